# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm plan``: what a recorded workload would do on other cards."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from rmm_uvm.cli.progress import replay_bar
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError

__all__ = ["command"]

_FILE = click.Path(path_type=Path)


class _List(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2
    """Values with commas between them."""

    name = "list"

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


@click.command("plan")
@click.argument("trace", type=_FILE)
@click.option(
    "--device-memory",
    type=_List(),
    metavar="SIZE,...",
    help="Card sizes such as 16GiB,24GiB; by default those around the workload's peak.",
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
@click.option(
    "--prefetch",
    type=_List(),
    metavar="MODE,...",
    help="auto, always, never; by default auto, and the others where it moves data.",
)
@click.option(
    "--driver-prefetch-threshold",
    type=_List(numbers=True),
    default="51",
    show_default=True,
    metavar="PERCENT,...",
    help="The UVM kernel driver's uvm_perf_prefetch_threshold.",
)
@click.option(
    "--policy",
    type=_List(),
    default="driver",
    show_default=True,
    metavar="NAME,...",
    help="driver, discard-dead: what dropping dead data would save.",
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes like the recorded one on a host, each on a card of its own.",
)
@click.option("--host-memory", metavar="SIZE", help="Of the host; by default as much as is wanted.")
@click.option(
    "--fitting-seconds",
    type=float,
    metavar="SECONDS",
    help="Time on a GPU with room for everything; by default from the recording.",
)
@click.option(
    "--device", type=click.IntRange(0), metavar="N", help="Of a recording of several devices."
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page with charts.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write all figures.")
def command(*, trace: Path, html: Path | None, json_file: Path | None, **options: Any) -> None:
    """Tell what a recorded workload would do on other cards, without one.

    TRACE is a file of `rmm-uvm run --trace`, or a log of RMM's logging adaptor; either may be
    gzipped. It is replayed on the simulated device, once for each card and way to run: time
    against that with room for everything, bytes moved, evictions, host memory, and the settings
    to use. No GPU is needed.

    Exit status: 0 done, 1 an error, 2 an argument or a file that cannot be used.
    """
    try:
        _check_files(trace, html, json_file)
        from rmm_uvm.planner import plan

        with replay_bar() as show:
            made = plan(trace, progress=show, **options)
        if html is not None:
            made.save_html(html)
        if json_file is not None:
            made.save_json(json_file)
    except (ConfigurationError, DataError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except MemoryError:
        click.echo(f"Error: {trace} describes more memory than can be replayed here", err=True)
        sys.exit(2)
    # Names and paths are printed as they are, brackets and colons too.
    Console(markup=False, emoji=False, highlight=False, soft_wrap=True).print(str(made))


def _check_files(trace: Path, html: Path | None, json_file: Path | None) -> None:
    """Refuse what could only fail after all the work."""
    for option, path in (("--html", html), ("--json", json_file)):
        if path is None:
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
    if html is not None and importlib.util.find_spec("bokeh") is None:
        raise AvailabilityError(
            "--html needs Bokeh, which is not installed: pip install 'rmm-uvm[report]'"
        )
