# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary of a recording for a terminal: about 25 lines of 80 columns, advice first.

And what stands under a cell of a notebook: its traffic in a line for each device, and advice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, by_line, causes, words
from rmm_uvm.report.advice import Advice, collect, message, verdict, when
from rmm_uvm.report.as_text import as_text, lines_of
from rmm_uvm.report.document import (
    Block,
    Document,
    Paragraph,
    Section,
    Table,
    TableColumn,
    Task,
    Tasks,
)
from rmm_uvm.report.figures import (
    OUTSIDE,
    Figures,
    StageFigures,
    between,
    by_stage,
    in_all,
    of_device,
    outside_stages,
)
from rmm_uvm.support.off_switch import OFF

__all__ = ["LINES", "SIMULATED", "cell_summary", "summary"]

LINES = 25
"""A summary is cut to about as many lines; advice and what is missing are never left out."""

SIMULATED = "rmm_uvm: simulated: residency is modelled, nothing ran on a GPU"
"""The first line of a summary of simulated devices."""

_NO_NEWS = ("not asked for", "switched off")
"""The beginning of the reason of a source that the user did not want."""

_EITHER = {"own_resources", "rmm_chain"}
"""A program has one of these or the other."""

_CELL_WIDTH = 100
_MOST_ADVICE = 3
_MOST_DEVICES = 4
_FEWEST_STAGES = 5
_MOST_MISSING = 3
_NAME_WIDTH = 18
_WIDTHS = (9, 11, 11, 11, 14)
_NEEDED_COLUMNS = 3  # however narrow the terminal is
_TITLES = ("time", "to device", "to host", "evicted", "peak footprint")
# With a budget what leaves stands in "to host"; what the kernel driver evicts is in a line above.
_BUDGET_TITLES = ("time", "waited", "to device", "to host", "peak footprint")
_WAITED_NOTE = "waited: for data or room, as far as known; not page faults"


def summary(recording: Recording) -> Document:
    """Return what a terminal shows of a recording."""
    before = [*by_line.culprit_section(recording, "look here first")]
    if not before or recording.findings or recording.failure:
        before.append(_advice(recording))
    before += _devices(recording)
    if lines := by_line.summary_lines(recording):
        before.append(Section("", lines))
    end = _end(recording)
    rest = Document((*before, end), tuple(_head(recording)))
    stages = _stages(recording, LINES - len(lines_of(rest)))
    return dataclasses.replace(rest, sections=(*before, *stages, end))


def cell_summary(
    recording: Recording, begin_seconds: float, end_seconds: float, stage: str = ""
) -> str:
    """Return the traffic from begin to end, seconds since the monitor began, and its advice.

    A finding belongs to the stretch if it was made in it. Lines of traffic begin with the name of
    the cell's stage, if it has one. Without a newline at the end.
    """
    name = "uvm" + f", {words.plain_name(stage, 40)}" * bool(stage)
    lines: list[str] = []
    for device in recording.devices:
        figures = between(recording, device, begin_seconds, end_seconds)
        if not figures.empty:
            lines.append(_cell_line(recording, device, figures, name))
    made = [f for f in recording.findings if begin_seconds < f.time_seconds <= end_seconds]
    if not lines:
        made = [finding for finding in made if finding.kind != "monitor"]  # this line says it
        missing = _missing_sources(recording)
        off = any(source.reason == OFF for source in recording.sources.values())
        reason = OFF if off else missing[0] if missing else "no device"
        seconds = words.clock_text(end_seconds - begin_seconds)
        lines.append(f"{name}: {seconds}, memory could not be watched: {reason}")
    blocks: list[Block] = [Paragraph(line, fit="keep") for line in lines]
    for one in collect(made):
        remedy = words.plain_name(one.finding.remedy, 200)
        said = words.plain_name(message(one.finding, recording), 300)
        blocks.append(Paragraph(f"{remedy}: {said}", lead="  * ", indent="    "))
    for section in by_line.culprit_section(recording, ""):
        blocks += (Paragraph("look here first"), *section.blocks)
    blocks += by_line.summary_lines(recording)
    return as_text(Document((), tuple(blocks)), _CELL_WIDTH)


def _cell_line(recording: Recording, device: RecordedDevice, figures: Figures, name: str) -> str:
    if len(recording.devices) > 1:
        name += f", device {device.device_id}"
    parts = [words.clock_text(figures.seconds)]
    if figures.host_to_device_bytes is not None:
        parts.append(f"{words.size(figures.host_to_device_bytes)} to the device")
        parts.append(f"{words.size(figures.device_to_host_bytes)} to the host")
        if figures.device_to_host_bytes:
            whose = f" {budgets.DRIVERS_OWN}" * (device.device_id in recording.budgets)
            parts.append(f"about {words.size(figures.evicted_bytes_estimate)} evicted{whose}")
    if figures.gpu_faults is not None:
        parts.append(f"{words.count(figures.gpu_faults)} GPU faults")
        parts.append(f"{words.count(figures.cpu_faults)} CPU faults")
    if figures.peak_footprint_bytes is not None:
        factor = words.factor(figures.peak_footprint_bytes, device.capacity_bytes)
        most = words.at_most(figures.peak_footprint_bytes)
        of = "capacity unknown" if factor == words.UNKNOWN else f"{factor} times capacity"
        parts.append(f"footprint {most}, {of}")
    return f"{name}{' (simulated)' if device.simulated else ''}: {', '.join(parts)}"


def _missing_sources(recording: Recording) -> list[str]:
    """Return the sources that should be there and are not, each with its reason."""
    enough = _EITHER if any(recording.sources.get(name) for name in _EITHER) else set()
    return [
        f"{words.plain_name(name, 40)}: {words.plain_name(why.reason, 200)}"
        for name, why in recording.sources.items()
        if not why and not why.reason.startswith(_NO_NEWS) and name not in enough
    ]


def _head(recording: Recording) -> list[Paragraph]:
    began = f", from {words.plain_name(recording.began, 40)}" if recording.began else ""
    lost = f"; the {recording.lost_samples} oldest samples are lost" * bool(recording.lost_samples)
    watched = f"watched memory for {words.clock_text(recording.duration_seconds)}{began}{lost}"
    simulated = [Paragraph(SIMULATED, fit="keep")] * recording.simulated
    about = [Paragraph(f"rmm_uvm: {words.program(recording.about)}", most=3)]
    watched_for = Paragraph(f"rmm_uvm: {watched}", most=3)
    return [*simulated, *about * ("program" in recording.about), watched_for]


def _advice(recording: Recording) -> Section:
    advice = collect(recording.findings)
    if not advice:
        return Section("", (Paragraph(verdict(recording), most=3),))
    blocks: list[Block] = []
    if recording.failure:
        blocks.append(Paragraph(words.plain_name(recording.failure, 300), most=3))
    tasks = Tasks(tuple(_task(one, recording) for one in advice[:_MOST_ADVICE]), most=3)
    blocks += [Paragraph("advice"), tasks]
    if (more := len(advice) - _MOST_ADVICE) > 0:
        blocks.append(Paragraph(f"and {more} more in the HTML report", lead="   "))
    return Section("", tuple(blocks))


def _task(advice: Advice, recording: Recording) -> Task:
    finding = advice.finding
    where = f"device {finding.device_id}: " if len(recording.devices) > 1 else ""
    worst = "at worst, " if advice.count > 1 else ""
    said = f"{worst}{words.plain_name(message(finding, recording), 300)}"
    if found := when(advice, recording):
        said = f"{found}: {said}"
    return Task(words.plain_name(finding.remedy, 200), f"{where}{said}")


def _devices(recording: Recording) -> list[Section]:
    if not recording.devices:
        return []
    if len(recording.devices) == 1:
        device = recording.devices[0]
        columns = (TableColumn(right=False, width=12), TableColumn(right=False, wraps=True))
        table = Table(columns, tuple(_figures(recording, device)))
        title = f"device {device.device_id}: {words.plain_name(device.name, 60)}"
        return [Section(title, (table,), indent="  ")]
    rows = [
        (
            f"device {device.device_id}",
            *_cells(of_device(recording, device), None, budgeted=bool(recording.budgets)),
        )
        for device in recording.devices[:_MOST_DEVICES]
    ]
    lines = []
    if more := len(recording.devices) - len(rows):
        lines.append(f"and {more} more devices")
    for device in recording.devices[:_MOST_DEVICES]:
        if (budget := budgets.of_device(recording, device)) is not None:
            lines.append(f"budget {device.device_id}: {budgets.lines(budget)[0]}")
            told = budgets.neighbor_lines(budget)[:1]
            lines += [f"neighbours {device.device_id}: {line}" for line in told]
    return [Section("", (_table("device", rows, recording), *map(Paragraph, lines)))]


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
    if budget is not None and (lost := budgets.lost(budget, figures.seconds)):
        rows.insert(0, ("time lost", lost))
    if figures.prefetched_bytes is not None:
        rows.append(
            (
                "prefetched",
                f"{_bound(figures.prefetched_bytes)}"
                f"{' beside what the budget fetched' * (budget is not None)}; "
                f"discarded {_bound(figures.discarded_bytes)}",
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


def _bound(value_bytes: int | None) -> str:
    return f"{'at most ' * bool(value_bytes)}{words.size(value_bytes)}"


def _evicted(recording: Recording, device: RecordedDevice, figures: Figures) -> str:
    by_cause = causes.of_device(recording, device.device_id)
    whose = f" {budgets.DRIVERS_OWN}" * (device.device_id in recording.budgets)
    if by_cause is not None:
        told = words.size(by_cause.last()["device_to_host"].get("eviction", 0))
        return f"{told}{whose}, told by cause"
    about = "about " * bool(figures.evicted_bytes_estimate)
    return f"{about}{words.size(figures.evicted_bytes_estimate)}{whose}"


def _stages(recording: Recording, room: int) -> list[Section]:
    per_device = [by_stage(recording, device) for device in recording.devices]
    if not per_device or not per_device[0]:
        return []
    rows = [_joined(same) for same in zip(*per_device, strict=True)]
    outside = [each for d in recording.devices if (each := outside_stages(recording, d))]
    # Two lines go to the blank and the header, one to what is left out, one to a budget's note.
    most = max(room - 2 - bool(recording.budgets), _FEWEST_STAGES) - bool(outside)
    if len(rows) > most:
        most -= 1
    longest = sorted(rows, key=lambda row: row.figures.seconds, reverse=True)[:most]
    shown = [row for row in rows if row in longest]
    budgeted = bool(recording.budgets)
    cells = [(_label(row), *_cells(row.figures, row, budgeted=budgeted)) for row in shown]
    if outside:
        cells.append((OUTSIDE, *_cells(in_all(outside), None, budgeted=budgeted)))
    notes = [_WAITED_NOTE] if recording.budgets else []
    if more := len(rows) - len(shown):
        notes.append(f"and {more} shorter stages")
    return [Section("", (_table("stage", cells, recording), *map(Paragraph, notes)))]


def _joined(same: Sequence[StageFigures]) -> StageFigures:
    first = same[0]
    figures = in_all([one.figures for one in same])
    return StageFigures(first.name, first.depth, first.runs, first.open, figures)


def _label(row: StageFigures) -> str:
    return f"{'  ' * min(row.depth, 3)}{words.plain_name(row.name)}"


def _cells(figures: Figures, row: StageFigures | None, *, budgeted: bool) -> tuple[str, ...]:
    time = words.clock_text(figures.seconds)
    moved = [words.size(figures.host_to_device_bytes), words.size(figures.device_to_host_bytes)]
    if budgeted:
        moved.insert(0, words.waited_text(figures.waited_ns))
    else:
        moved.append(words.size(figures.evicted_bytes_estimate))
    return (
        f"{time}+" if row is not None and row.open else time,
        *moved,
        words.size(figures.peak_footprint_bytes),
    )


def _table(first: str, rows: Sequence[tuple[str, ...]], recording: Recording) -> Table:
    titles = _BUDGET_TITLES if recording.budgets else _TITLES
    columns = [
        TableColumn(title, width=width, spare=place >= _NEEDED_COLUMNS)
        for place, (title, width) in enumerate(zip(titles, _WIDTHS, strict=True))
    ]
    name = TableColumn(first, right=False, most=_NAME_WIDTH)
    return Table((name, *columns), tuple(rows))


def _end(recording: Recording) -> Section:
    missing = _missing_sources(recording)
    lines = [f"not watched: {one}" for one in missing[:_MOST_MISSING]]
    if (more := len(missing) - _MOST_MISSING) > 0:
        lines.append(f"not watched: {more} more")
    cost = words.clock_text(recording.cost_seconds)
    part = ""
    if recording.duration_seconds >= 1 and len(recording.samples):  # before, it is mostly the start
        part = f", {recording.cost_seconds / recording.duration_seconds:.2%} of one core"
    attribution = recording.settings.get("attribution", "")
    if attribution not in ("", "on", "off"):  # it has a price
        lines.append(words.plain_name(attribution, 200))
    lines.append(f"watching took {cost} of processor time{part}")
    return Section("", tuple(Paragraph(line, indent="  ", most=2) for line in lines))
