# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run``: run a script, a module or any command, watched."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from rmm_uvm.cli.afterwards import Afterwards
from rmm_uvm.cli.numbers import finite
from rmm_uvm.cli.once import OnceCommand
from rmm_uvm.cli.setting_options import Refused, settings_options
from rmm_uvm.errors import AvailabilityError, ConfigurationError, UvmError
from rmm_uvm.run import outputs, pool_check, program, torch_memory
from rmm_uvm.run.outputs import files_named
from rmm_uvm.run.program import PythonProgram
from rmm_uvm.run.request import RunRequest
from rmm_uvm.support.driver_names import simulated_bytes
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.settings import OF_TORCH, SETTINGS

__all__ = ["Split", "command", "split"]


@dataclass(frozen=True)
class Split:
    """A command line, taken apart: our options, and what to run."""

    options: tuple[str, ...]
    kind: str
    words: tuple[str, ...]


def split(words: Sequence[str], valued: frozenset[str]) -> Split:
    """Take the command line apart, where Python itself would.

    Parameters
    ----------
    words : sequence of str
        All that follows ``rmm-uvm run``.
    valued : frozenset of str
        Our options that take a value.

    Returns
    -------
    Split
        Of kind "script", "module", "command", or "" when nothing is named.

    Examples
    --------
    >>> split(["--quiet", "-m", "json.tool", "--quiet"], frozenset())
    Split(options=('--quiet',), kind='module', words=('json.tool', '--quiet'))
    """
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            return Split(tuple(words[:place]), "command", tuple(words[place + 1 :]))
        if word == "-m":
            return Split(tuple(words[:place]), "module", tuple(words[place + 1 :]))
        if word.startswith("-m") and not word.startswith("--"):
            return Split(tuple(words[:place]), "module", (word[2:], *words[place + 1 :]))
        if not word.startswith("-") or word == "-":
            return Split(tuple(words[:place]), "script", tuple(words[place:]))
        place += 2 if word in valued else 1
    return Split(tuple(words), "", ())


class _RunCommand(OnceCommand):
    """A command whose options end where the program begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        valued = frozenset(
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        )
        parts = split(args, valued)
        ctx.obj = parts
        return super().parse_args(ctx, list(parts.options))

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an error of this package comes before the program, and has its own status."""
        try:
            return super().invoke(ctx)
        except UvmError as error:
            raise Refused(str(error)) from error


_FILE = click.Path(dir_okay=True)  # a folder is refused by outputs.check, like all the others


@click.command(
    "run", cls=_RunCommand, options_metavar="[OPTIONS] script.py|-m MODULE|-- COMMAND [ARGS]..."
)
@click.option("--no-pool", is_flag=True, help="Only watch: install nothing.")
@click.option(
    "--device",
    metavar="N|simulated[:SIZE[@MACHINE]]",
    help="A CUDA ordinal, or a simulated device.",
)
@settings_options(SETTINGS)
@click.option(
    "--torch",
    is_flag=True,
    help="Let the program's PyTorch use managed memory: docs/use/training.md.",
)
@settings_options(OF_TORCH)
@click.option(
    "--eager/--no-eager",
    default=None,
    help="With --torch: fetch what comes next ahead of its use, or just before it.",
)
@click.option(
    "--interval",
    callback=finite,
    type=click.FloatRange(0.001, 3600),
    default=0.1,
    show_default=True,
    metavar="SECONDS",
    help="Time between two samples.",
)
@click.option(
    "--attribution", is_flag=True, help="Tell why pages move. Slow: see docs/use/metrics.md."
)
@click.option(
    "--faults",
    is_flag=True,
    help="Count page faults too; a program that only faults takes up to 10 % longer.",
)
@click.option(
    "--lines",
    is_flag=True,
    help="Tell what moved by the program's lines; reports then hold code and paths of files.",
)
@click.option(
    "--advise",
    is_flag=True,
    help="Afterwards replay the run on a model with other settings, and tell which save time.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write a report with a timeline.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write all figures.")
@click.option("--trace", type=_FILE, metavar="FILE", help="Write every allocation.")
@click.option("--quiet", is_flag=True, help="Print no summary.")
@click.option(
    "--on-finding",
    type=click.Choice(["warn", "log", "raise"]),
    default="warn",
    show_default=True,
    help="What to do with a warning.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a Python program on managed memory, and tell what moved.

    Installs the pool (see rmm_uvm.reinitialize), watches, and prints a summary on the error stream
    when the program has ended. SIGTERM (timeout, Slurm, Kubernetes) and SIGHUP (a terminal or a
    connection that closes) end it with its summary and files too, unless it handles them, or nohup
    has SIGHUP ignored; os._exit and SIGKILL leave none.

    Exit status: the program's. Before it began: 2 if something that was asked for cannot be used; 1
    if there is no such module, or no memory for the pool; 127 and 126 if a command is not found or
    cannot be run.

    A script or module runs as python would run it. After -- comes any command: its first Python
    process gets the pool; others, and programs that are no Python, are watched from outside.
    Without a GPU the program runs all the same, and the summary says what could not be watched.
    """
    parts: Split = ctx.obj
    if not parts.words or not parts.words[0]:
        raise click.UsageError("nothing to run: name a script, -m MODULE, or -- COMMAND", ctx)
    request = _request(options)
    outputs.check(request, files_named(parts.kind, parts.words))
    if not is_off():  # else nothing of this is done
        torch_memory.check(request)
        pool_check.check(request)
    if parts.kind == "command":
        request = outputs.with_scratch(request)
        try:
            sys.exit(_run_command(request, parts.words))
        finally:
            outputs.drop_scratch(request)
    what = PythonProgram(
        "module" if parts.kind == "module" else "script", parts.words[0], parts.words[1:]
    )
    try:
        program.check(what)
    except AvailabilityError as error:  # no such module: as python has it
        raise click.ClickException(str(error)) from error
    from rmm_uvm.run.session import prepare

    request = outputs.with_scratch(request)
    try:
        run = prepare(request, what)
    except BaseException as error:  # else who tells of the run drops it
        outputs.drop_scratch(request)
        if isinstance(error, MemoryError):
            raise click.ClickException(str(error)) from error
        raise
    raise Afterwards(run)


def _run_command(request: RunRequest, words: Sequence[str]) -> int:
    from rmm_uvm.run.command import CommandError
    from rmm_uvm.run.session import watch_command
    from rmm_uvm.top.machine import real_seams

    try:
        return watch_command(request, words, real_seams())
    except CommandError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_status


def _request(options: dict[str, Any]) -> RunRequest:
    if options["advise"] and options["no_pool"]:
        raise ConfigurationError("--advise is about what the pool does: leave out --no-pool")
    driver, device = _device(options["device"])
    absolute = functools.partial(_absolute, options)
    return RunRequest(
        pool=not options["no_pool"],
        driver=driver,
        device=device,
        settings={name: options[name] for name in SETTINGS if options.get(name) is not None},
        torch=options["torch"],
        **{name: options[name] for name in OF_TORCH if options[name] is not None},
        eager=options["eager"],
        interval_seconds=options["interval"],
        attribution=options["attribution"],
        faults=options["faults"],
        lines=options["lines"],
        html=absolute("html"),
        json=absolute("json_file"),
        trace=absolute("trace"),
        advise=options["advise"],
        on_finding=options["on_finding"],
        quiet=options["quiet"],
    )


def _absolute(options: dict[str, Any], name: str) -> str | None:
    """Return a path that stays right when the program changes its directory."""
    path: str | None = options[name]
    if path == "-":
        raise ConfigurationError(
            f"--{name.removesuffix('_file')} -: standard output is the program's own; name a file"
        )
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - keeps links


def _device(text: str | None) -> tuple[str | None, int | None]:
    if text is None:
        return None, None
    if text.isascii() and text.isdigit():
        return None, int(text)
    kind, colon, size = text.partition(":")
    if kind != "simulated" or (colon and not size):
        raise ConfigurationError(
            f"--device {text!r}: use a number, simulated, simulated:SIZE or simulated:SIZE@MACHINE"
        )
    if size:
        simulated_bytes(text, f"--device {text}")
    return text, None
