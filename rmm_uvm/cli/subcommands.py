# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Subcommands of ``rmm-uvm``, imported when they are called, and those that others add.

A distribution adds one by an entry point of the group `GROUP`: its name is the subcommand's, its
value a `click.Command`. What describes the distribution describes the subcommand in the list.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import click

from rmm_uvm.errors import AvailabilityError, UvmError

__all__ = ["GROUP", "KNOWN", "Subcommand", "added_subcommands", "load", "refuse_known"]

GROUP = "rmm_uvm.commands"
KNOWN: Mapping[str, tuple[str, str]] = {
    "mortgage": ("the mortgage pipeline", "rmm-uvm-mortgage[cpu]"),
}
"""Subcommands that can be added: what each is, and what to install for it."""


@dataclass(frozen=True)
class Subcommand:
    """A subcommand: where its code is, and what it does.

    Attributes
    ----------
    target : str
        ``module:attribute`` of its `click.Command`, imported only when it is called.
    summary : str
        One line for the list of commands.
    added_by : str
        Distribution and version of one that was added; empty for our own.
    """

    target: str
    summary: str
    added_by: str = ""


def added_subcommands() -> dict[str, Subcommand]:
    """Return the subcommands that installed distributions add, by name; none is imported.

    Read from their files: `importlib.metadata` would take longer than all the rest of ``--help``.
    """
    found: dict[str, Subcommand] = {}
    for folder in _distributions():
        for name, target in _entry_points(folder):
            distribution = folder.name.removesuffix(".dist-info").replace("-", " ")
            found.setdefault(name, Subcommand(target, _summary(folder) or target, distribution))
    return found


def load(name: str, subcommand: Subcommand) -> click.Command:
    """Import and return a subcommand.

    Raises
    ------
    AvailabilityError
        One that was added cannot be imported, or is none.
    """
    module, _, attribute = subcommand.target.partition(":")
    if not subcommand.added_by:
        command: click.Command = getattr(import_module(module), attribute)
        return command
    try:
        command = getattr(import_module(module), attribute)
    except UvmError:
        raise
    except Exception as error:  # whatever somebody's module does when it is imported
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        raise AvailabilityError(_broken(name, subcommand, problem)) from error
    if not isinstance(command, click.Command):
        problem = f"{type(command).__name__} is no click.Command"
        raise AvailabilityError(_broken(name, subcommand, problem))
    return command


def refuse_known(name: str) -> None:
    """Raise AvailabilityError for a subcommand that there is, but not here."""
    if name in KNOWN:
        what, package = KNOWN[name]
        raise AvailabilityError(
            f"rmm-uvm {name}: {what} is a package of its own, which is not installed.\n"
            f"Install it: pip install '{package}'. What is there: rmm-uvm --help"
        )


def _broken(name: str, subcommand: Subcommand, problem: str) -> str:
    return (
        f"rmm-uvm {name}: {subcommand.added_by} adds it, and cannot be loaded "
        f"({subcommand.target}: {problem}): install another version, or uninstall it"
    )


def _distributions() -> Iterator[Path]:
    """Yield the folders of installed distributions, in the order in which imports look."""
    for place in sys.path:
        with contextlib.suppress(OSError):
            yield from sorted(Path(place).glob("*.dist-info"))


def _entry_points(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values of the group; nothing where there is none."""
    with contextlib.suppress(OSError, ValueError):
        text = (folder / "entry_points.txt").read_text("utf-8")
        for line in text.partition(f"[{GROUP}]\n")[2].partition("\n[")[0].splitlines():
            name, is_one, target = line.partition("=")
            if is_one:
                yield name.strip(), target.strip()


def _summary(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / "METADATA").read_text("utf-8").splitlines():
            if line.startswith("Summary: "):
                return line.removeprefix("Summary: ").strip()
    return ""
