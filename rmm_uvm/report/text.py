# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary of a recording for a terminal: about 25 lines of 80 columns, advice first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, causes, words
from rmm_uvm.report.advice import Advice, collect, message, verdict
from rmm_uvm.report.figures import Figures, StageFigures, by_stage, in_all, of_device

__all__ = ["LINES", "WIDTH", "missing_sources", "summary"]

LINES = 25
"""A summary is cut to about as many lines; advice and what is missing are never left out."""

WIDTH = 80
"""Columns of a terminal."""

_NO_NEWS = ("not asked for", "switched off")
"""How the reason of a source begins that the user did not want."""

_EITHER = {"own_resources", "rmm_chain"}
"""A program has one of these or the other."""


_MOST_ADVICE = 3
_MOST_DEVICES = 4
_FEWEST_STAGES = 5
_MOST_MISSING = 3
_NAME_WIDTH = 18
_HEADERS = ("time", "to device", "to host", "evicted", "peak footprint")
# What leaves for a budget is known of the whole run only, and stands in "to host".
_BUDGET_HEADERS = ("time", "to device", "to host", "by driver", "peak footprint")
_BY_DRIVER_NOTE = "by driver: evicted by the kernel driver, and not for the budget"


def summary(recording: Recording, width: int = WIDTH) -> str:
    """Return the summary as text, without a newline at its end.

    Parameters
    ----------
    recording : Recording
        What to show.
    width : int
        Columns of the terminal; tables keep theirs.
    """
    begin = [*_head(recording, width), "", *_advice(recording, width)]
    devices = _devices(recording, width)
    end = _end(recording, width)
    room = LINES - len(begin) - len(devices) - len(end)
    lines = [*begin, *devices, *_stages(recording, room), *end]
    return "\n".join(line.rstrip() for line in lines)


def missing_sources(recording: Recording) -> list[str]:
    """Return the sources that should be there and are not, each with its reason."""
    enough = _EITHER if any(recording.sources.get(name) for name in _EITHER) else set()
    return [
        f"{words.plain_name(name, 40)}: {words.plain_name(why.reason, 200)}"
        for name, why in recording.sources.items()
        if not why and not why.reason.startswith(_NO_NEWS) and name not in enough
    ]


def _head(recording: Recording, width: int) -> list[str]:
    lines = ["rmm_uvm: simulated: residency is modelled, nothing ran on a GPU"]
    began = f", from {words.plain_name(recording.began, 40)}" if recording.began else ""
    lost = f"; the {recording.lost_samples} oldest samples are lost" * bool(recording.lost_samples)
    watched = f"watched memory for {words.clock_text(recording.duration_seconds)}{began}{lost}"
    return [*lines[: recording.simulated], *_wrapped(f"rmm_uvm: {watched}", width)]


def _advice(recording: Recording, width: int) -> list[str]:
    advice = collect(recording.findings)
    if not advice:
        return _wrapped(verdict(recording), width)
    lines = []
    if recording.failure:
        lines += _wrapped(words.plain_name(recording.failure, 300), width)
    lines.append("advice")
    for number, one in enumerate(advice[:_MOST_ADVICE], start=1):
        lines += _one_advice(number, one, recording, width)
    if more := len(advice) - _MOST_ADVICE:
        lines += [f"   and {more} more in the HTML report"] if more > 0 else []
    return lines


def _one_advice(number: int, advice: Advice, recording: Recording, width: int) -> list[str]:
    finding = advice.finding
    where = f"device {finding.device_id}: " if len(recording.devices) > 1 else ""
    when = f"at {words.clock_text(advice.first_seconds)}: "
    if advice.count > 1:
        when = f"{advice.count} times, first {when}at worst, "
    said = words.plain_name(finding.remedy, 200)
    why = f"{where}{when}{words.plain_name(message(finding, recording), 300)}"
    return [
        *_wrapped(said, width, f"{number}. ", "   ", most=2),
        *_wrapped(why, width, "   ", "   "),
    ]


def _devices(recording: Recording, width: int) -> list[str]:
    if not recording.devices:
        return []
    if len(recording.devices) == 1:
        device = recording.devices[0]
        lines = ["", f"device {device.device_id}: {words.plain_name(device.name, 60)}"]
        for name, text in _figures(recording, device):
            lines += _wrapped(text, width, f"  {name:<12} ", " " * 15)
        return lines
    rows = [
        (f"device {device.device_id}", _cells(of_device(recording, device), None))
        for device in recording.devices[:_MOST_DEVICES]
    ]
    lines = ["", *_table("device", rows, budgeted=bool(recording.budgets))]
    if more := len(recording.devices) - len(rows):
        lines.append(f"and {more} more devices")
    for device in recording.devices[:_MOST_DEVICES]:
        if (budget := budgets.of_device(recording, device)) is not None:
            lines.append(f"budget {device.device_id}: {budgets.lines(budget)[0]}")
            told = budgets.neighbor_lines(budget)[:1]
            lines += [f"neighbours {device.device_id}: {line}" for line in told]
    return lines


def _figures(recording: Recording, device: RecordedDevice) -> list[tuple[str, str]]:
    figures = of_device(recording, device)
    capacity = words.size(device.capacity_bytes) if device.capacity_bytes else "unknown"
    rows = []
    if figures.peak_footprint_bytes is not None:
        most = words.at_most(figures.peak_footprint_bytes)
        factor = words.factor(figures.peak_footprint_bytes, device.capacity_bytes)
        if factor == words.UNKNOWN:
            rows.append(("footprint", f"{most}; capacity {capacity}"))
        else:
            rows.append(("footprint", f"{most}, {factor} times the capacity of {capacity}"))
    else:
        rows.append(("footprint", f"unknown; capacity {capacity}"))
    if figures.host_to_device_bytes is not None:
        rows.append(
            (
                "moved",
                f"{words.size(figures.host_to_device_bytes)} to the device, "
                f"{words.size(figures.device_to_host_bytes)} to the host",
            )
        )
        rows.append(("evicted", _evicted(recording, device, figures)))
    budget = budgets.of_device(recording, device)
    if figures.prefetched_bytes is not None:
        rows.append(
            (
                "prefetched",
                f"{words.size(figures.prefetched_bytes)}"
                f"{' beside what the budget fetched' * (budget is not None)}; "
                f"discarded {words.size(figures.discarded_bytes)}",
            )
        )
    if figures.gpu_faults is not None:
        rows.append(
            (
                "faults",
                f"{words.count(figures.gpu_faults)} of the GPU, "
                f"{words.count(figures.cpu_faults)} of the CPU",
            )
        )
    if budget is not None:
        for name, lines in (
            ("budget", budgets.lines(budget)),
            ("neighbours", budgets.neighbor_lines(budget)),
        ):
            rows += [(name if n == 0 else "", line) for n, line in enumerate(lines)]
    return rows


def _evicted(recording: Recording, device: RecordedDevice, figures: Figures) -> str:
    by_cause = causes.of_device(recording, device.device_id)
    whose = f" {budgets.DRIVERS_OWN}" * (device.device_id in recording.budgets)
    if by_cause is not None:
        told = words.size(by_cause.last()["device_to_host"].get("eviction", 0))
        return f"{told}{whose}, told by cause"
    about = "about " * bool(figures.evicted_bytes_estimate)
    return f"{about}{words.size(figures.evicted_bytes_estimate)}{whose}"


def _stages(recording: Recording, room: int) -> list[str]:
    per_device = [by_stage(recording, device) for device in recording.devices]
    if not per_device or not per_device[0]:
        return []
    rows = [_joined(same) for same in zip(*per_device, strict=True)]
    # Two lines go to the blank and the header, one to what is left out, one to a budget's note.
    most = max(room - 2 - bool(recording.budgets), _FEWEST_STAGES)
    if len(rows) > most:
        most -= 1
    longest = sorted(rows, key=lambda row: row.figures.seconds, reverse=True)[:most]
    shown = [row for row in rows if row in longest]
    budgeted = bool(recording.budgets)
    cells = [(_label(row), _cells(row.figures, row)) for row in shown]
    lines = ["", *_table("stage", cells, budgeted=budgeted)]
    if budgeted:
        lines.append(_BY_DRIVER_NOTE)
    if more := len(rows) - len(shown):
        lines.append(f"and {more} shorter stages")
    return lines


def _joined(same: Sequence[StageFigures]) -> StageFigures:
    first = same[0]
    figures = in_all([one.figures for one in same])
    return StageFigures(first.name, first.depth, first.runs, first.open, figures)


def _label(row: StageFigures) -> str:
    return f"{'  ' * min(row.depth, 3)}{words.plain_name(row.name)}"


def _cells(figures: Figures, row: StageFigures | None) -> tuple[str, ...]:
    time = words.clock_text(figures.seconds)
    return (
        f"{time}+" if row is not None and row.open else time,
        words.size(figures.host_to_device_bytes),
        words.size(figures.device_to_host_bytes),
        words.size(figures.evicted_bytes_estimate),
        words.size(figures.peak_footprint_bytes),
    )


def _table(first: str, rows: Sequence[tuple[str, tuple[str, ...]]], *, budgeted: bool) -> list[str]:
    lines = [_row(first, _BUDGET_HEADERS if budgeted else _HEADERS)]
    return lines + [_row(name, cells) for name, cells in rows]


def _row(name: str, cells: Sequence[str]) -> str:
    # Measured in cells of the terminal: a Chinese letter takes two.
    if cell_len(name) > _NAME_WIDTH:
        name = set_cell_size(name, _NAME_WIDTH - 1) + "…"
    return f"{set_cell_size(name, _NAME_WIDTH)} {cells[0]:>9}" + "".join(
        f" {cell:>{width}}" for cell, width in zip(cells[1:], (11, 11, 11, 14), strict=True)
    )


def _end(recording: Recording, width: int) -> list[str]:
    lines = []
    missing = missing_sources(recording)
    for one in missing[:_MOST_MISSING]:
        lines += _wrapped(f"not watched: {one}", width, "", "  ", most=2)
    if more := len(missing) - _MOST_MISSING:
        lines += [f"not watched: {more} more"] if more > 0 else []
    cost = words.clock_text(recording.cost_seconds)
    part = ""
    if recording.duration_seconds >= 1 and len(recording.samples):  # before, it is mostly the start
        part = f", {recording.cost_seconds / recording.duration_seconds:.2%} of one core"
    attribution = recording.settings.get("attribution", "")
    if attribution not in ("", "on", "off"):  # it has a price
        lines += _wrapped(words.plain_name(attribution, 200), width, "", "  ", most=2)
    return ["", *lines, f"watching took {cost} of processor time{part}"]


def _wrapped(text: str, width: int, lead: str = "", indent: str = "", most: int = 3) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=lead,
        subsequent_indent=indent,
        max_lines=-(-most * WIDTH // width),  # as much text, however narrow
        placeholder=" …",
    )
