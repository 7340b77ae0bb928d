# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them, and names that strangers gave as plain text.

Names of stages come from programs: control characters could move a terminal's cursor, and a name
of ten thousand letters would push the figures off the page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from rmm_uvm.support.units import format_bytes

__all__ = [
    "at_most",
    "clock_text",
    "count",
    "factor",
    "memory_unit",
    "plain_name",
    "program",
    "rate_unit",
    "size",
]

UNKNOWN = "-"
_SHORT_SECONDS = 0.00995  # from there on two digits of a hundredth are 0.010 s
# Advice and reasons are written for terminals too, where a command stands between backticks.
COMMAND = re.compile("`([^`]+)`")


def size(value_bytes: int | None) -> str:
    """Return bytes with a unit; a dash for what is not known."""
    return UNKNOWN if value_bytes is None else format_bytes(value_bytes)


def program(about: Mapping[str, str]) -> str:
    """Return in a few words which program was watched, where, and how it ended.

    Parameters
    ----------
    about : mapping of str to str
        As `rmm_uvm.recording.recorded.Recording.about` has it.

    Examples
    --------
    >>> program({"program": "/usr/bin/python etl.py", "host": "n1", "exit status": "0"})
    'python etl.py on n1, exit status 0'
    """
    begin, *rest = plain_name(about.get("program", ""), 300).split(" ")
    told = " ".join([begin.rpartition("/")[2], *rest])
    if host := about.get("host"):
        told += f" on {plain_name(host, 60)}"
    if status := about.get("exit status"):
        told += f", exit status {plain_name(status, 20)}"
    return told


def at_most(value_bytes: int | None) -> str:
    """Return the most of a level: samples without any do not say that there never was any.

    Examples
    --------
    >>> at_most(1 << 20), at_most(0)
    ('at most 1.00 MiB', '0 B in every sample')
    """
    return f"{size(0)} in every sample" if value_bytes == 0 else f"at most {size(value_bytes)}"


def count(value: int | None) -> str:
    """Return a count with separators; a dash for what is not known."""
    return UNKNOWN if value is None else f"{value:,}"


def factor(value_bytes: int | None, capacity_bytes: int) -> str:
    """Return the oversubscription factor; a dash for what is not known.

    Examples
    --------
    >>> factor(3 << 30, 2 << 30), factor(None, 1)
    ('1.50', '-')
    """
    if value_bytes is None or capacity_bytes <= 0:
        return UNKNOWN
    return f"{value_bytes / capacity_bytes:.2f}"


def memory_unit(most_bytes: float) -> tuple[float, str]:
    """Return a binary unit in which a size is a number that one can read.

    Examples
    --------
    >>> memory_unit(3e9), memory_unit(5e6)
    ((1073741824, 'GiB'), (1048576, 'MiB'))
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if most_bytes >= 1024**power:
            return 1024**power, unit
    return 1024, "KiB"


def rate_unit(most_bytes: float) -> tuple[float, str]:
    """Return a decimal unit for bytes a second, as links and buses are specified in.

    Examples
    --------
    >>> rate_unit(2.5e10), rate_unit(0)
    ((1000000000, 'GB/s'), (1000, 'kB/s'))
    """
    for power, unit in ((4, "TB/s"), (3, "GB/s"), (2, "MB/s")):
        if most_bytes >= 1000**power:
            return 1000**power, unit
    return 1000, "kB/s"


def waited_text(ns: int | None) -> str:
    """Return a time of waiting, given in nanoseconds; None is not known.

    Examples
    --------
    >>> waited_text(1_500_000_000), waited_text(0)
    ('1.5 s', '0 s')
    """
    return UNKNOWN if ns is None else clock_text(ns / 1e9)


def clock_text(seconds: float) -> str:
    """Return a time since the start, or that something took.

    Below 0.01 s with three digits that count: simulated devices and small programs take so little.

    Examples
    --------
    >>> clock_text(0.0123), clock_text(12.34), clock_text(4000)
    ('0.012 s', '12.3 s', '1:06:40')
    >>> clock_text(0.00612), clock_text(0.00002), clock_text(0)
    ('6.12 ms', '20.0 us', '0 s')
    """
    if seconds == 0:
        return "0 s"
    if abs(seconds) < _SHORT_SECONDS:
        return _short_text(seconds)
    if seconds < 1:
        return f"{seconds:.3f} s"
    if seconds < 300:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _short_text(seconds: float) -> str:
    # Rounded first: 999.9 us are 1.00 ms, and no 1000 us.
    nanoseconds = float(f"{seconds * 1e9:.2e}")
    for unit, factor_ns in (("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= factor_ns:
            return f"{nanoseconds / factor_ns:#.3g} {unit}".replace(". ", " ")
    return f"{nanoseconds:.3g} ns"


def plain_name(name: str, most: int = 120) -> str:
    r"""Return a name without control characters and not longer than `most` characters.

    Examples
    --------
    >>> plain_name("etl\x1b[2J") == "etl\ufffd[2J", plain_name("abcdef", 4), plain_name("")
    (True, 'abc…', '(no name)')
    """
    # Cut first: the name may be of any length.
    cut = name if len(name) <= most else f"{name[: most - 1]}…"
    # "C": control, format (which can turn the direction of what follows), surrogate, unassigned.
    shown = "".join("\ufffd" if unicodedata.category(c)[0] == "C" else c for c in cut)
    return shown.strip() or "(no name)"
