# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shows traffic by lines of the program, for terminals, pages and other programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rmm_uvm.recording.line_traffic import CallPath, LineSum, LineTraffic, MovedBytes, ProgramLine
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import budgets, words
from rmm_uvm.report.culprits import Culprit, Fault, culprits
from rmm_uvm.report.document import (
    Block,
    Paragraph,
    Section,
    Table,
    TableColumn,
    Task,
    Tasks,
    titled,
)
from rmm_uvm.report.flame import flame
from rmm_uvm.support.user_line import library_name, users_place

__all__ = [
    "as_dict",
    "blamed",
    "culprit_section",
    "has_culprit",
    "line_title",
    "page_sections",
    "summary_lines",
    "told",
]

_MOST_SHOWN = 3
_MOST_IN_PAGE = 50
_MOST_OBJECTS = 10
_MOST_CALLERS = 2
_TEXT_WIDTH = 52  # with its indent within a terminal of 60 columns
_CELL_WIDTH = 44
_NOBODY = "no line known"
_WHY_NOBODY = "allocated earlier, by no thread of Python, or on a path past the first 65,536"
_NO_CALLER = "no line of the program"
_SMALL_BUDGET = "All of it fits on the device. What is small is the budget"
_OFTEN = 1.5  # as often as that, and it came back again and again
_TITLES = ("Line", "Code", "Most at a time", "What moved")
_OBJECT_COLUMNS = (
    TableColumn("Line", right=False),
    *map(TableColumn, ("Allocation", "Size", "To device", "Evicted")),
)
_HOLDS_CODE = "It holds lines of the program and paths of its files: look before you pass it on."
_TOGETHER = "Lines whose memory comes back take turns on the device: together they have"
_PATH_TITLES = ("Copied", "Calls, the outermost first")


def told(one: LineSum) -> str:
    """Return in a few words what moved of a line's memory.

    Examples
    --------
    >>> moved = MovedBytes(13 << 30, 0, 12 << 30, returned_bytes=12 << 30)
    >>> told(LineSum(None, 1, 0, 1 << 30, moved, allocated=(1 << 30,)))
    'came 1.00 GiB; came back 12 times, 12.00 GiB; evicted 12.00 GiB'
    """
    moved = one.moved
    said = []
    if first_bytes := moved.to_device_bytes - moved.returned_bytes:
        said.append(f"came {words.size(first_bytes)}")
    if moved.returned_bytes:
        often = f" {one.times:.0f} times," if one.times >= _OFTEN else ""
        said.append(f"came back{often} {words.size(moved.returned_bytes)}")
    for name, nbytes in (
        ("evicted", moved.evicted_bytes),
        ("read by the CPU", moved.read_back_bytes),
        ("share of blocks dropped dead", moved.dropped_bytes),
    ):
        if nbytes:
            said.append(f"{name} {words.size(nbytes)}")
    return "; ".join(said) or "nothing moved"


def blamed(culprit: Culprit, lines: LineTraffic) -> str:
    """Return in a few words what is wrong with a line's memory."""
    one, moved = culprit.line, culprit.line.moved
    if culprit.fault is Fault.RETURNS:
        often = f" {one.times:.0f} times" if one.times >= _OFTEN else ""
        by_cpu = "; the CPU uses it in between" if _left_for_the_cpu(one) else ""
        return f"its memory comes back{often}, {words.size(moved.returned_bytes)} in all{by_cpu}"
    if culprit.fault is Fault.GROWS:
        most, evicted = words.size(one.peak_bytes), words.size(moved.evicted_bytes)
        return f"its memory grows all through the run, to {most}; evicted {evicted}"
    part, all_of_it = words.size(sum(one.at_top)), words.size(lines.peak_bytes)
    return f"it makes the peak: {part} of the {all_of_it} that are allocated then"


def _left_for_the_cpu(one: LineSum) -> bool:
    """Return whether a line's memory left the device for the CPU more than to make room."""
    return one.moved.read_back_bytes > one.moved.evicted_bytes


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


def culprit_section(recording: Recording, title: str) -> Iterator[Section]:
    """Yield the lines to look at, by number; nothing where no line is to blame."""
    lines = recording.lines
    found = () if lines is None else culprits(lines)
    if lines is not None and found:
        shown = found[:_MOST_SHOWN]
        tasks = Tasks(
            tuple(_task(one.line, blamed(one, lines), lines, one.paths) for one in shown),
            most=4,
            are_places=True,
        )
        blocks: tuple[Block, ...] = (tasks,)
        if small_bytes := budgets.small_bytes(recording, lines.peak_bytes):
            small = Paragraph(f"{_SMALL_BUDGET} of {words.size(small_bytes)}. In the budget:")
            blocks = (small, *blocks)
        back = [one.line for one in shown if one.fault is Fault.RETURNS]
        back = [one for one in back if not _left_for_the_cpu(one)]
        if len(back) > 1:
            together = words.size(sum(one.peak_bytes for one in back))
            blocks += (Paragraph(f"{_TOGETHER} {together}."),)
        yield Section(title, blocks, "look-first")


def summary_lines(recording: Recording) -> tuple[Block, ...]:
    """Return what moved of lines that are not to blame; nothing where lines are not known."""
    lines = recording.lines
    if lines is None:
        return ()
    blamed_lines = {one.line.line for one in culprits(lines)[:_MOST_SHOWN]}
    moved = [one for one in lines.by_line() if one.moved.copied_bytes]
    others = [one for one in moved if one.line not in blamed_lines]
    if not blamed_lines:
        how = f" ({lines.how})" if moved else ""
        return (
            Paragraph(f"by line: {_no_culprit(lines)}{how}"),
            Tasks(tuple(_task(one, told(one), lines) for one in moved[:_MOST_SHOWN]), most=4),
        )
    if not others:
        return ()
    some = "another line" if len(others) == 1 else f"{len(others)} other lines"
    nbytes = words.size(sum(one.moved.copied_bytes for one in others))
    return (Paragraph(f"by line: {nbytes} of {some} moved: see --json or --html"),)


def has_culprit(recording: Recording) -> bool:
    """Return whether there is a line to look at first."""
    return recording.lines is not None and bool(culprits(recording.lines))


def _no_culprit(lines: LineTraffic) -> str:
    """Return why no line is named."""
    moved = {one.line: one.moved for one in lines.by_line() if one.moved.copied_bytes}
    if not moved:
        return "no memory of the program's lines moved"
    came, again, evicted = (
        words.size(sum(getattr(one, name) for one in moved.values()))
        for name in ("to_device_bytes", "returned_bytes", "evicted_bytes")
    )
    if None in moved and 2 * moved[None].copied_bytes > sum(m.copied_bytes for m in moved.values()):
        return f"{words.size(moved[None].copied_bytes)} moved with {_NOBODY}: {_WHY_NOBODY}"
    return f"no line is to blame: {came} came to the device, {again} again; evicted {evicted}"


def _task(one: LineSum, said: str, lines: LineTraffic, at_fault: tuple[CallPath, ...] = ()) -> Task:
    text = "" if one.line is None else f": {words.plain_name(one.line.text, _TEXT_WIDTH)}"
    notes = []
    if library := _library(lines, one):
        notes.append(f"allocated by {library}")
    of_line = lines.paths_of(one.line)
    others = [path for path in of_line if path not in at_fault] if at_fault else []
    if callers := _callers(lines, at_fault or of_line, others):
        notes.append(f"called by {callers}")
    return Task(f"{line_title(one.line)}{text}", said, "; ".join(notes))


def _library(lines: LineTraffic, one: LineSum) -> str:
    """Return the library by way of which a line allocated most; empty for none that is known."""
    most = max(lines.paths_of(one.line), key=lambda path: path.peak_bytes)
    if not most.users:
        return ""
    return library_name(lines.lines[most.lines[most.users - 1]].file)


def page_sections(recording: Recording, prefix: str) -> Iterator[Section]:
    """Yield the tables of a page: lines, call paths, allocations."""
    lines = recording.lines
    if lines is None:
        return
    sums = lines.by_line()
    moved = [one for one in sums if one.moved != MovedBytes()]
    rows = [_row(one) for one in moved[:_MOST_IN_PAGE]]
    blocks: list[Block] = [
        Paragraph(f"What moved, by the line that allocated it: {lines.how}. {_HOLDS_CODE}"),
    ]
    if not culprits(lines):
        blocks.append(Paragraph(f"{_no_culprit(lines)}.", "verdict"))
    if more := len(moved) - len(rows):
        rows.append((f"and {more} more lines in the JSON report",))
    if rows:
        title = "Lines whose memory moved most"
        blocks.append(Table(titled(_TITLES, right=False), tuple(rows), title))
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
        "windows": None if lines.windows is None else dataclasses.asdict(lines.windows),
        "lines": [_where(line) for line in lines.lines],
        "culprits": [
            {**_where(one.line.line), "fault": one.fault.value, "told": blamed(one, lines)}
            for one in culprits(lines)
        ],
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
        "allocated_bytes": sum(one.allocated),
        "live_bytes": one.live_bytes,
        "peak_bytes": one.peak_bytes,
        **dataclasses.asdict(one.moved),
    }


def _callers(lines: LineTraffic, paths: Iterable[CallPath], others: Iterable[CallPath]) -> str:
    """Return which lines of the program called one, by its paths, and what was copied of each.

    What is called from one line only has the line, unless that runs a whole script: then nothing.
    Lines that other paths have too tell nothing, if there is one that they have not.
    """
    shared = {number for path in others for number in path.lines}
    of_caller: dict[ProgramLine | None, int] = {}
    for path in paths:
        if path.users is not None:
            calls = path.lines[path.users + 1 :]
            own = [number for number in calls if number not in shared] or calls
            outer = [lines.lines[number] for number in own]
            place = users_place([one.file for one in outer])
            caller = None if place is None else outer[place]
            of_caller[caller] = of_caller.get(caller, 0) + path.moved.copied_bytes
    if len(of_caller) < 2:
        only = next(iter(of_caller), None)
        return "" if only is None or only.function.startswith("<module") else line_title(only)
    busiest = sorted(of_caller.items(), key=lambda item: -item[1])[:_MOST_CALLERS]
    return "; ".join(
        f"{_NO_CALLER if caller is None else line_title(caller)}: {words.size(nbytes)}"
        for caller, nbytes in busiest
        if nbytes
    )


def _row(one: LineSum) -> tuple[str, ...]:
    return (
        line_title(one.line),
        "" if one.line is None else words.plain_name(one.line.text, _CELL_WIDTH),
        words.size(one.peak_bytes),
        told(one) if one.line is not None else f"{told(one)}; {_WHY_NOBODY}",
    )


def _calls(lines: LineTraffic, path: CallPath) -> str:
    outermost = path.lines[::-1]
    return " > ".join(line_title(lines.lines[number]) for number in outermost) or _NOBODY
