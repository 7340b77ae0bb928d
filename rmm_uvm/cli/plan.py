# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm plan``: what a recorded workload would do on other cards."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmm_uvm.cli.console import make_console
from rmm_uvm.cli.once import OnceCommand
from rmm_uvm.cli.option_words import in_options
from rmm_uvm.cli.progress import replay_bar
from rmm_uvm.cli.standard_input import NAME, piped
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.support.optional_packages import check_html
from rmm_uvm.support.output import columns_of
from rmm_uvm.support.settings import PREFETCH_MODES

if TYPE_CHECKING:
    from rmm_uvm.planner import Plan

__all__ = ["command"]

_FILE = click.Path(path_type=Path)
_PIPE = Path("-")


class _List(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2
    """Values with commas between them."""

    name = "list"
    takes_commas = True

    def __init__(self, *, numbers: bool = False) -> None:
        self._numbers = numbers

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | int, ...]:
        """Return the values; those that are to be whole numbers and are not stay text."""
        if not isinstance(value, str):
            return tuple(value)
        parts = tuple(part.strip() for part in value.split(","))
        if not self._numbers:
            return parts
        return tuple(int(part) if part.isascii() and part.isdigit() else part for part in parts)


def _list_option(
    name: str, metavar: str, meaning: str, default: str | None = None, *, numbers: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return an option that takes values with commas between them."""
    return click.option(
        name,
        type=_List(numbers=numbers),
        default=default,
        show_default=default is not None,
        metavar=f"{metavar},...",
        help=meaning,
    )


@click.command("plan", cls=OnceCommand)
@click.argument("trace", type=_FILE)
@_list_option(
    "--device-memory",
    "SIZE",
    "Card sizes such as 16GiB,24GiB; by default those around the workload's peak.",
)
@click.option(
    "--profile",
    "--machine",
    "machine",
    default="h200-pcie5",
    show_default=True,
    metavar="NAME",
    help="Machine profile to simulate: a name, or a .toml file.",
)
@_list_option(
    "--prefetch",
    "MODE",
    f"{', '.join(PREFETCH_MODES)}; by default auto, and the others where it moves data.",
)
@_list_option(
    "--driver-prefetch-threshold",
    "PERCENT",
    "The UVM kernel driver's uvm_perf_prefetch_threshold.",
    "51",
    numbers=True,
)
@_list_option(
    "--policy",
    "NAME",
    "driver, discard-dead: what dropping dead data would save.",
    "driver",
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes like the recorded one on a host, each on a card of its own.",
)
@click.option(
    "--host-memory",
    metavar="SIZE",
    help="Memory of the host; by default as much as the plan needs.",
)
@click.option(
    "--third-tier",
    metavar="SIZE@READ/WRITE",
    help="Storage behind a full host, rates in GB/s: 2TB@6.8/4.0/80us. Needs --host-memory.",
)
@click.option(
    "--fitting-seconds",
    type=float,
    metavar="SECONDS",
    help="Time on a GPU with room for everything; by default from the recording.",
)
@click.option(
    "--device",
    type=click.IntRange(0),
    metavar="N",
    help="Plan for this device, if the recording has several.",
)
@click.option(
    "--announced",
    is_flag=True,
    help="Also try budgets: for cuDF, and programs that call rmm_uvm.touch.",
)
@click.option(
    "--html", type=_FILE, metavar="FILE", help="Write a page with charts; - is standard output."
)
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write all figures; - is standard output.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    trace: Path,
    html: Path | None,
    json_file: Path | None,
    **options: Any,
) -> None:
    """Tell what a recorded workload would do on other cards, without one.

    TRACE is a file of `rmm-uvm run --trace`, or a log of RMM's logging adaptor; either may be
    gzipped; - is standard input. It is replayed on the simulated device, once for each card and way
    to run: time against that with room for everything, bytes moved, evictions, host memory, and the
    settings to use. No GPU is needed.

    Exit status: 0 done, 1 an error, 2 an argument or a file that cannot be used.
    """
    called = NAME if trace == _PIPE else str(trace)
    try:
        _check_files(trace, html, json_file)
        made = _planned(trace, options)
        # Last what goes to standard output: that other files cannot be written is told before.
        for path, text, save in sorted(
            ((html, made.html, made.save_html), (json_file, made.to_json, made.save_json)),
            key=lambda one: one[0] == _PIPE,
        ):
            if path == _PIPE:
                click.echo(text())
            elif path is not None:
                save(path)
    except (ConfigurationError, DataError) as error:
        names = (param.name or "" for param in ctx.command.params)
        click.echo(f"Error: {in_options(str(error), names)}", err=True)
        sys.exit(2)
    except MemoryError:
        click.echo(f"Error: {called} describes more memory than can be replayed here", err=True)
        sys.exit(2)
    if _PIPE in (html, json_file):
        return
    from rmm_uvm.report.as_text import WIDTH

    # Names and paths are printed as they are, brackets and colons too.
    make_console(soft_wrap=True).print(made.text(columns_of(sys.stdout, WIDTH)))


def _planned(trace: Path, options: dict[str, Any]) -> Plan:
    """Return the plan of a file, or of what comes through a pipe."""
    from rmm_uvm.planner import plan

    with contextlib.ExitStack() as stack:
        path = stack.enter_context(piped()) if trace == _PIPE else trace
        show = stack.enter_context(replay_bar())
        made = plan(path, progress=show, **options)
    if trace == _PIPE:
        made = dataclasses.replace(
            made, workload=dataclasses.replace(made.workload, source=Path(NAME))
        )
    return made


def _check_files(trace: Path, html: Path | None, json_file: Path | None) -> None:
    """Refuse what could only fail after all the work."""
    for option, path in (("--html", html), ("--json", json_file)):
        if path is None or path == _PIPE:
            continue
        if path.is_dir():
            raise ConfigurationError(f"{option} {path} is a folder: name a file")
        if path.exists() and trace.exists() and path.samefile(trace):
            raise ConfigurationError(f"{option} {path} is the recording itself: name another file")
        if not path.absolute().parent.is_dir():
            raise ConfigurationError(
                f"{option} {path}: there is no folder {path.absolute().parent}"
            )
    if html is not None and json_file is not None and html.absolute() == json_file.absolute():
        raise ConfigurationError(f"--html and --json name the same file: {html}")
    if html is not None:
        check_html()
