# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which columns of a view fit a terminal, and how wide they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rmm_uvm.top.program import program_name
from rmm_uvm.top.view import ProcessRow

__all__ = ["NARROW", "Column", "choose", "cut", "label", "printable", "short_bytes", "short_rate"]

NARROW = 60
"""Below this width units and titles are abbreviated."""

_GAP = 1


@dataclass(frozen=True)
class Column:
    """One column.

    Parameters
    ----------
    key, title : str
        What it shows, and the words above it.
    width : int
        Characters.
    right : bool
        Set flush right.
    """

    key: str
    title: str
    width: int
    right: bool = True


def choose(
    width: int,
    *,
    pid_digits: int = 7,
    name_characters: int = 24,
    devices: bool = False,
    faults: bool = False,
    budgets: bool = False,
    harvests: bool = False,
) -> list[Column]:
    """Return the columns that fit, in order.

    Parameters
    ----------
    width : int
        Of the terminal, characters.
    pid_digits : int
        Of the longest PID.
    name_characters : int
        Of the longest name.
    devices : bool
        Processes use several devices: say which.
    faults : bool
        Faults are counted.
    budgets : bool
        Processes keep a budget.
    harvests : bool
        Processes hold, or held, memory of other devices.

    Examples
    --------
    >>> [column.title for column in choose(40)]
    ['PID', 'NAME', 'FOOT', 'IN/s', 'OUT/s', 'EVICT']
    """
    narrow = width < NARROW
    size = 5 if narrow else 8
    shown = {
        "pid": Column("pid", "PID", max(3, pid_digits)),
        "name": Column(
            "name", "NAME", 8 if narrow else max(8, min(15, name_characters)), right=False
        ),
        "in": Column("in", "IN/s", size),
        "out": Column("out", "OUT/s", size),
    }
    resident = Column("resident", "RESIDENT", 8)
    # The most useful first: what no longer fits is left out, and smaller ones may still fit.
    wanted = [
        Column("evicted", "EVICT" if narrow else "EVICTED", size),
        Column("footprint", "FOOT" if narrow else "FOOTPRINT", size if narrow else 9),
        resident,
        Column("history", "LAST MINUTE", 11, right=False),
        Column("capacity", "CAPACITY", 8),
    ]
    if faults:
        wanted.insert(1, Column("faults", "FLT/s" if narrow else "FAULTS/s", size))
    if budgets:
        wanted.insert(wanted.index(resident) + 1, Column("budget", "BUDGET", size))
    if harvests:
        wanted.insert(1, Column("harvested", "HARV" if narrow else "HARVEST", size))
    if devices:
        wanted.insert(0, Column("device", "DEV", 3))
    for column in wanted:
        if _total([*shown.values(), column]) <= width:
            shown[column.key] = column
    for key, most in (
        ("name", min(24, name_characters)),
        ("history", 60),
        ("name", name_characters),
    ):
        if key in shown:
            spare = width - _total(shown.values())
            now = shown[key]
            shown[key] = replace(now, width=max(now.width, min(most, now.width + spare)))
    return [shown[key] for key in _ORDER if key in shown]


_ORDER = (
    "pid",
    "name",
    "device",
    "footprint",
    "resident",
    "budget",
    "harvested",
    "capacity",
    "in",
    "out",
    "evicted",
    "faults",
    "history",
)


def short_bytes(size_bytes: float | None, *, narrow: bool = False) -> str:
    """Return a size in three digits: at most 8 characters, 5 if narrow; "-" if unknown.

    Examples
    --------
    >>> short_bytes(1536), short_bytes(139 * 2**30, narrow=True), short_bytes(None)
    ('1.50 KiB', '139G', '-')
    """
    return _three_digits(size_bytes, 1024, "KMGTP", "iB", narrow=narrow)


def _three_digits(
    nbytes: float | None, step: int, prefixes: str, unit: str, *, narrow: bool
) -> str:
    if nbytes is None:
        return "-"
    scaled, prefix = float(nbytes), ""
    for larger in prefixes:
        if round(scaled) < 1000:
            break
        scaled, prefix = scaled / step, larger
    if not prefix:
        return f"{scaled:.0f}" if narrow else f"{scaled:.0f} B"
    digits = 2 if round(scaled, 2) < 10 else 1 if round(scaled, 1) < 100 else 0
    digits = max(0, digits - 1) if narrow else digits
    return f"{scaled:.{digits}f}{prefix}" if narrow else f"{scaled:.{digits}f} {prefix}{unit}"


def short_rate(rate_bytes: float | None, *, narrow: bool = False) -> str:
    """Return bytes a second in three digits and decimal units, as reports have them.

    Examples
    --------
    >>> short_rate(1.5e9), short_rate(4.1e7, narrow=True), short_rate(None)
    ('1.50 GB', '41M', '-')
    """
    return _three_digits(rate_bytes, 1000, "kMGTP", "B", narrow=narrow)


def label(row: ProcessRow) -> str:
    """Return the name of a process, see `program_name`. Only characters that can be printed.

    Examples
    --------
    >>> label(ProcessRow(7, "python3", "/usr/bin/python3 -u /home/me/train.py --fast"))
    'train.py'
    >>> label(ProcessRow(7, "rmm-uvm", "/usr/bin/python3 train.py"))
    'train.py'
    """
    name = program_name(row.name, row.command) or "?"
    if row.exited:
        name += " ended"
    return printable(name)


def printable(text: str) -> str:
    r"""Return text that cannot do anything to a terminal.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def cut(text: str, width: int, *, plain_ascii: bool = False) -> str:
    """Return text that fits, marked where it was cut.

    Examples
    --------
    >>> cut("mortgage_etl.py", 8, plain_ascii=True)
    'mortgag~'
    """
    return text if len(text) <= width else text[: width - 1] + ("~" if plain_ascii else "…")


def _total(columns: Iterable[Column]) -> int:
    widths = [column.width for column in columns]
    return sum(widths) + _GAP * (len(widths) - 1)
