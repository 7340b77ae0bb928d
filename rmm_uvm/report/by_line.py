# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What moved by lines of the program, for terminals, pages and other programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmm_uvm.recording.line_traffic import CallPath, LineSum, LineTraffic, MovedBytes, ProgramLine
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import words
from rmm_uvm.report.document import Block, Paragraph, Section, Table, TableColumn, titled
from rmm_uvm.report.flame import flame
from rmm_uvm.support.user_line import users_place

__all__ = ["as_dict", "line_title", "page_sections", "summary_lines", "told"]

_MOST_IN_SUMMARY = 5
_MOST_IN_PAGE = 50
_MOST_OBJECTS = 10
_MOST_CALLERS = 2
_TEXT_WIDTH = 52  # with its indent within a terminal of 60 columns
_NOBODY = (
    "no line known: allocated earlier, by no thread of Python, or on a path past the first 65,536"
)
_NO_CALLER = "no line of the program"
_OFTEN = 1.5  # as often as that, and it came back again and again
_TITLES = ("Line", "Code", "What moved", "Most at a time")
_OBJECT_COLUMNS = (
    TableColumn("Line", right=False),
    *map(TableColumn, ("Allocation", "Size", "To device", "Evicted")),
)
_HOLDS_CODE = "It holds lines of the program and paths of its files: look before you pass it on."
_PATH_TITLES = ("Copied", "Calls, the outermost first")


def told(one: LineSum) -> str:
    """Return in a few words what moved of a line's memory.

    Examples
    --------
    >>> told(LineSum(None, 1, 0, 1 << 30, MovedBytes(12 << 30, 0, 11 << 30)))
    'brought back 12 times, 12.00 GiB; evicted 11.00 GiB'
    """
    moved = one.moved
    said = []
    if moved.to_device_bytes:
        how = "brought back" if moved.brought_bytes >= moved.faulted_bytes else "faulted in"
        often = f" {one.times:.0f} times," if one.times >= _OFTEN else ""
        said.append(f"{how}{often} {words.size(moved.to_device_bytes)}")
    for name, nbytes in (
        ("evicted", moved.evicted_bytes),
        ("read by the CPU", moved.read_back_bytes),
        ("share of blocks dropped dead", moved.dropped_bytes),
    ):
        if nbytes:
            said.append(f"{name} {words.size(nbytes)}")
    return "; ".join(said) or "nothing moved"


def line_title(line: ProgramLine | None) -> str:
    """Return a line's place in a few words.

    Examples
    --------
    >>> line_title(ProgramLine("/home/me/etl.py", 41, "load"))
    'etl.py:41 in load'
    """
    if line is None:
        return _NOBODY
    function = words.plain_name(line.function.replace(".<locals>", ""))
    inside = "" if function.startswith("<module") else f" in {function}"
    return f"{words.plain_name(Path(line.file).name, 40)}:{line.number}{inside}"


def summary_lines(recording: Recording) -> tuple[Paragraph, ...]:
    """Return the lines whose memory was copied most, for a terminal; nothing where none was."""
    if recording.lines is None:
        return ()
    moved = [one for one in recording.lines.by_line() if one.moved.copied_bytes]
    if not moved:
        return (Paragraph("by line: no memory of the program's lines moved"),)
    blocks = [Paragraph("lines whose memory moved most")]
    for number, one in enumerate(moved[:_MOST_IN_SUMMARY], 1):
        blocks.append(Paragraph(line_title(one.line), lead=f"  {number}. ", indent="     "))
        if one.line is not None and one.line.text:
            text = words.plain_name(one.line.text, _TEXT_WIDTH)
            blocks.append(Paragraph(text, lead="     ", indent="     "))
        blocks.append(Paragraph(told(one), lead="     ", indent="     "))
        if callers := _callers(recording.lines, one.line):
            blocks.append(Paragraph(f"called by {callers}", lead="     ", indent="     "))
    if (more := len(moved) - _MOST_IN_SUMMARY) > 0:
        blocks.append(Paragraph(f"and {more} more in --json and --html", lead="     "))
    return tuple(blocks)


def page_sections(recording: Recording, prefix: str) -> Iterator[Section]:
    """Yield the tables of a page: lines, call paths, allocations."""
    lines = recording.lines
    if lines is None:
        return
    sums = lines.by_line()
    rows = [_row(one) for one in sums[:_MOST_IN_PAGE]]
    if more := len(sums) - len(rows):
        rows.append((f"and {more} more lines in the JSON report",))
    blocks: list[Block] = [
        Paragraph(f"What moved, by the line that allocated it: {lines.how}. {_HOLDS_CODE}"),
        Table(titled(_TITLES, right=False), tuple(rows), "Lines whose memory moved most"),
    ]
    if (chart := flame(lines)) is not None:
        blocks.append(dataclasses.replace(chart, name=f"{prefix}{chart.name}"))
    busiest = sorted(lines.paths, key=lambda path: -path.moved.copied_bytes)[:_MOST_IN_PAGE]
    paths = [
        (words.size(path.moved.copied_bytes), _calls(lines, path))
        for path in busiest
        if path.moved.copied_bytes
    ]
    if paths:
        blocks.append(Table(titled(_PATH_TITLES, right=False), tuple(paths), "Call paths"))
    objects = tuple(
        (
            line_title(lines.users_line(lines.paths[one.path])),
            words.count(one.number),
            words.size(one.nbytes),
            words.size(one.moved.to_device_bytes),
            words.size(one.moved.evicted_bytes),
        )
        for one in lines.objects[:_MOST_OBJECTS]
    )
    if objects:
        blocks.append(Table(_OBJECT_COLUMNS, objects, "Allocations that moved most"))
    yield Section("Which line", tuple(blocks), f"{prefix}lines")


def as_dict(recording: Recording) -> dict[str, Any] | None:
    """Return all lines, call paths and allocations as plain values; None without them.

    Paths name lines by their number in the list of all, from 0, the innermost first.
    """
    lines = recording.lines
    if lines is None:
        return None
    return {
        "how": lines.how,
        "lines": [_where(line) for line in lines.lines],
        "by_line": [
            {
                **_where(one.line),
                **_sums(one),
                "times": round(one.times, 3),
            }
            for one in lines.by_line()
        ],
        "by_path": [
            {
                "lines": list(path.lines),
                "users": path.users,
                **_sums(path),
            }
            for path in lines.paths
            if path.allocations or path.moved != MovedBytes()
        ],
        "objects": [
            {
                "number": one.number,
                "bytes": one.nbytes,
                "live": one.live,
                **_where(lines.users_line(lines.paths[one.path])),
                **dataclasses.asdict(one.moved),
            }
            for one in lines.objects
        ],
    }


def _where(line: ProgramLine | None) -> dict[str, Any]:
    """Return a line's fields, by names that do not clash with others beside them."""
    names = ("file", "line", "function", "text")
    return dict.fromkeys(names) if line is None else dict(zip(names, _values(line), strict=True))


def _values(line: ProgramLine) -> tuple[str | int, ...]:
    return line.file, line.number, line.function, line.text


def _sums(one: LineSum | CallPath) -> dict[str, Any]:
    return {
        "allocations": one.allocations,
        "live_bytes": one.live_bytes,
        "peak_bytes": one.peak_bytes,
        **dataclasses.asdict(one.moved),
    }


def _callers(lines: LineTraffic, line: ProgramLine | None) -> str:
    """Return which lines of the program called one, and what was copied; empty for one caller."""
    of_caller: dict[ProgramLine | None, int] = {}
    for path in lines.paths:
        if path.users is not None and lines.users_line(path) == line:
            outer = [lines.lines[number] for number in path.lines[path.users + 1 :]]
            place = users_place([one.file for one in outer])
            caller = None if place is None else outer[place]
            of_caller[caller] = of_caller.get(caller, 0) + path.moved.copied_bytes
    if len(of_caller) < 2:
        return ""
    busiest = sorted(of_caller.items(), key=lambda item: -item[1])[:_MOST_CALLERS]
    return "; ".join(
        f"{_NO_CALLER if caller is None else line_title(caller)}: {words.size(nbytes)}"
        for caller, nbytes in busiest
    )


def _row(one: LineSum) -> tuple[str, ...]:
    return (
        line_title(one.line),
        "" if one.line is None else words.plain_name(one.line.text, 80),
        told(one),
        words.size(one.peak_bytes),
    )


def _calls(lines: LineTraffic, path: CallPath) -> str:
    outermost = path.lines[::-1]
    return " > ".join(line_title(lines.lines[number]) for number in outermost) or _NOBODY
