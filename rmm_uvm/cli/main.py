# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rmm-uvm``: finds the subcommand, runs it, and turns errors into one line.

Exit status: 0 done, 1 an error of this package (or what the subcommand documents), 2 wrong usage.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rmm_uvm.cli.afterwards import Afterwards
from rmm_uvm.cli.subcommands import Subcommand, added_subcommands, load, refuse_known
from rmm_uvm.errors import UvmError
from rmm_uvm.support.messages import meant
from rmm_uvm.support.requirements import own_distribution

__all__ = ["SUBCOMMANDS", "LazyGroup", "Subcommand", "main", "make_group"]


SUBCOMMANDS: Mapping[str, Subcommand] = {
    "doctor": Subcommand(
        "rmm_uvm.cli.doctor:command", "Tell what works on this machine, and why not."
    ),
    "plan": Subcommand(
        "rmm_uvm.cli.plan:command", "Tell what a recorded workload would do on other cards."
    ),
    "report": Subcommand("rmm_uvm.cli.report:command", "Compare two runs by their kept reports."),
    "run": Subcommand("rmm_uvm.cli.run:command", "Run a program on managed memory, watched."),
    "top": Subcommand("rmm_uvm.cli.top:command", "Show what managed memory moves, live."),
}


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is called, and not to list it.

    Parameters
    ----------
    subcommands : mapping of str to Subcommand
        Subcommands by name.
    extensible : bool
        Whether there are those that installed distributions add, too.
    **attributes : object
        As for `click.Group`.
    """

    def __init__(
        self,
        subcommands: Mapping[str, Subcommand],
        *,
        extensible: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self._subcommands = subcommands
        self._extensible = extensible

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return list(self._all())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None if there is none of this name."""
        found = self._subcommands.get(cmd_name)
        if found is None and self._extensible:
            found = added_subcommands().get(cmd_name)
            if found is None:
                refuse_known(cmd_name)
        return None if found is None else load(cmd_name, found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; of a misspelt one tell which may have been meant, and which exist.

        Raises
        ------
        click.UsageError
            There is no such subcommand.
        """
        name = args[0]
        # A shell that completes words asks, too: it gets no error.
        asked = not name.startswith("-") and not ctx.resilient_parsing
        if asked and self.get_command(ctx, name) is None:
            names = self.list_commands(ctx)
            ctx.fail(f"there is no command {name!r}{meant(name, names)}: use {', '.join(names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.summary) for name, each in self._all().items()])

    def _all(self) -> dict[str, Subcommand]:
        """Return all subcommands in the order of their names; of two of one name, ours."""
        added = added_subcommands() if self._extensible else {}
        return dict(sorted((added | dict(self._subcommands)).items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; an error of this package becomes one line and exit status 1."""
        try:
            return super().invoke(ctx)
        except UvmError as error:
            raise click.ClickException(str(error)) from error


def make_group() -> LazyGroup:
    """Return the top-level command."""
    group = LazyGroup(
        SUBCOMMANDS,
        extensible=True,
        name="rmm-uvm",
        help="Managed GPU memory for cuDF, CuPy and PyTorch: data may outgrow the device.",
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
    )
    name = own_distribution()
    return click.version_option(package_name=name, message="rmm-uvm %(version)s")(group)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``rmm-uvm`` and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line without the program's name; that of the process by default.

    Raises
    ------
    SystemExit
        With the exit status; a program that ``rmm-uvm run`` ran may end otherwise.
    """
    try:
        try:
            make_group().main(arguments, prog_name="rmm-uvm")
        finally:
            # Short output is written only now; a reader that has gone away must be noticed here,
            # since at interpreter exit it would become a traceback.
            if sys.stdout is not None:  # as it is where standard output is closed: >&-
                sys.stdout.flush()
    except BrokenPipeError:
        # As documented for SIGPIPE in the Python documentation: nothing more can be written.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename:
            raise
        _drop_output()
        click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
        sys.exit(1)
    except Afterwards as program:
        run = program.run
    run()  # here no exception is being handled, and click is gone


def _drop_output() -> None:
    """Let what is left in standard output's buffer vanish at interpreter exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
