# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a recording: advice, then each device with its charts, then what is to look up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, by_line, causes, words
from rmm_uvm.report.advice import Advice, collect, message, verdict, when
from rmm_uvm.report.as_html import INSTALL_HINT
from rmm_uvm.report.document import (
    Block,
    Bullets,
    Chart,
    Document,
    FigureCell,
    FigureGrid,
    Paragraph,
    Section,
    Span,
    Table,
    Task,
    Tasks,
    titled,
)
from rmm_uvm.report.figures import OUTSIDE, StageFigures, by_stage, of_device, outside_stages
from rmm_uvm.report.series import DeviceSeries

__all__ = ["SIMULATED", "advised", "inline", "page", "sections", "watched"]

SIMULATED = Paragraph(
    (Span("Simulated:", "strong"), " residency and migration are modelled; nothing ran on a GPU."),
    "simulated",
)
"""The first paragraph of a page about simulated devices."""

# A page of eight devices is not eight times as large: each gets fewer buckets.
_MOST_BUCKETS = 700
_FEWEST_BUCKETS = 120
_MOST_STAGES = 200
_MOST_FINDINGS = 200
_STAGE_TITLES = (
    "Stage", "Runs", "Time", "To device", "To host", "Evicted", "Prefetched", "Peak footprint",
)  # fmt: skip
_BUDGET_STAGE_TITLES = (
    "Stage", "Runs", "Time", "Waited", "To device", "To host", "Of it by the driver",
    "Prefetched beside the budget", "Peak footprint",
)  # fmt: skip
_FINDING_TITLES = ("When", "Device", "Kind", "What was the case")
_NOTHING = Paragraph("Nothing to draw: nothing was known about this device's memory.")
_HINT = Paragraph(
    "Drag a chart to move through time; hold Ctrl and turn the wheel to zoom; all charts follow. "
    "Point at a line, a band or a numbered mark to read it: the numbers are those of the advice.",
    "hint",
)


def page(recording: Recording) -> Document:
    """Return the page.

    Raises
    ------
    AvailabilityError
        What charts need is not installed.
    """
    return Document(
        title="Memory report" + (" (simulated)" if recording.simulated else ""),
        opening=(*[SIMULATED] * recording.simulated, Paragraph(watched(recording))),
        sections=(
            *by_line.culprit_section(recording, "Look here first"),
            *_what_to_do(recording),
            *sections(recording, len(recording.devices), has_hint=True),
        ),
    )


def inline(recording: Recording) -> Document:
    """Return advice and charts alone, for a notebook. Raises as `page`."""
    title = "Simulated device: what to do" if recording.simulated else "What to do"
    n_charted = len(recording.devices)
    devices = (
        _section(device, (_figures(recording, device), *_charts(recording, device, n_charted)))
        for device in recording.devices
    )
    return Document((Section(title, advised(recording), "advice"), *devices))


def sections(
    recording: Recording, n_charted: int, prefix: str = "", *, has_hint: bool = False
) -> tuple[Section, ...]:
    """Return all but the advice, as it is also part of larger pages.

    Parameters
    ----------
    recording : Recording
        What to show.
    n_charted : int
        Devices on the whole page, which share its size.
    prefix : str
        What names on the page begin with.
    has_hint : bool
        Whether to say how charts are read.
    """
    found = [*by_line.page_sections(recording, prefix)]
    for number, device in enumerate(recording.devices):
        blocks: list[Block] = [_figures(recording, device)]
        if charts := _charts(recording, device, n_charted, prefix):
            blocks += [_HINT] if has_hint and number == 0 else []
            blocks += charts
        else:
            blocks.append(_NOTHING)
        found.append(_section(device, [*blocks, *_stages(recording, device)], prefix))
    return (*found, *_background(recording, prefix))


def watched(recording: Recording) -> str:
    """Return for how long a recording was watched, and what that took."""
    program = f"{words.program(recording.about)}. " if "program" in recording.about else ""
    text = f"{program}Watched for {words.clock_text(recording.duration_seconds)}"
    if recording.began:
        text += f" from {words.plain_name(recording.began, 40)}"
    if recording.interval_seconds:
        text += f", a sample every {recording.interval_seconds:g} s"
    if recording.lost_samples:
        text += f"; the {recording.lost_samples} oldest samples are lost"
    return f"{text}. Watching took {words.clock_text(recording.cost_seconds)} of processor time."


def advised(recording: Recording) -> tuple[Block, ...]:
    """Return what to do, or the one sentence that stands in its place."""
    advice = tuple(_task(one, recording) for one in collect(recording.findings))
    if not recording.failure:
        return (Tasks(advice) if advice else Paragraph(verdict(recording), "verdict"),)
    failed = Paragraph(words.plain_name(recording.failure, 300), "failed")
    return (failed, Tasks(advice)) if advice else (failed,)


def _what_to_do(recording: Recording) -> Iterator[Section]:
    # Beside a line to look at, "nothing to do" would be wrong.
    if recording.findings or recording.failure or not by_line.has_culprit(recording):
        yield Section("What to do", advised(recording), "advice")


def _task(one: Advice, recording: Recording) -> Task:
    finding = one.finding
    where = f"device {finding.device_id}, " if len(recording.devices) > 1 else ""
    said = words.plain_name(message(finding, recording), 300)
    remedy = words.plain_name(finding.remedy, 300)
    return Task(remedy, said, f"{where}{when(one, recording)}".rstrip(", "))


def _section(device: RecordedDevice, blocks: Sequence[Block], prefix: str = "") -> Section:
    title = f"Device {device.device_id}: {words.plain_name(device.name)}"
    return Section(title, tuple(blocks), f"{prefix}device-{device.device_id}")


def _charts(
    recording: Recording, device: RecordedDevice, n_charted: int, prefix: str = ""
) -> list[Chart]:
    try:
        from rmm_uvm.report.charts import charts
    except ImportError as error:
        raise AvailabilityError(INSTALL_HINT) from error
    n_buckets = max(_MOST_BUCKETS // max(n_charted, 1), _FEWEST_BUCKETS)
    return charts(recording, device, n_buckets, n_charted, prefix)


def _stages(recording: Recording, device: RecordedDevice) -> Iterator[Table]:
    stages = sorted(by_stage(recording, device), key=lambda row: -row.figures.seconds)
    shown = {id(row) for row in stages[:_MOST_STAGES]}
    in_order = by_stage_order(stages, recording)
    rows = [_stage(row, recording) for row in in_order if id(row) in shown]
    if more := len(stages) - len(rows):
        rows.append((f"and {more} shorter stages",))
    if (outside := outside_stages(recording, device)) is not None:
        row = StageFigures(OUTSIDE, 0, 0, open=False, figures=outside)
        rows.append(_stage(row, recording))
    if rows:
        titles = _BUDGET_STAGE_TITLES if recording.budgets else _STAGE_TITLES
        yield Table(titled(titles), tuple(rows), "By stage")


def by_stage_order(rows: Sequence[StageFigures], recording: Recording) -> list[StageFigures]:
    """Return rows in order of the first begin of their stages."""
    place: dict[str, int] = {}
    for number, stage in enumerate(recording.stages):
        place.setdefault(stage.name, number)
    return sorted(rows, key=lambda row: place[row.name])


def _stage(row: StageFigures, recording: Recording) -> tuple[str, ...]:
    figures = row.figures
    waited = [words.waited_text(figures.waited_ns)] if recording.budgets else []
    return (
        "\u2003" * min(row.depth, 4) + words.plain_name(row.name),
        words.count(row.runs) if row.runs else "",
        words.clock_text(figures.seconds) + (" (not ended)" if row.open else ""),
        *waited,
        words.size(figures.host_to_device_bytes),
        words.size(figures.device_to_host_bytes),
        words.size(figures.evicted_bytes_estimate),
        words.size(figures.prefetched_bytes),
        words.size(figures.peak_footprint_bytes),
    )


def _figures(recording: Recording, device: RecordedDevice) -> FigureGrid:
    figures = of_device(recording, device)
    by_cause = causes.of_device(recording, device.device_id)
    exact = DeviceSeries(recording.of(device.device_id)).resident_exact
    factor = words.factor(figures.peak_footprint_bytes, device.capacity_bytes)
    evicted, how = (
        figures.evicted_bytes_estimate,
        "estimate" if figures.evicted_bytes_estimate else "",
    )
    if by_cause is not None:
        evicted, how = by_cause.last()["device_to_host"].get("eviction", 0), "told by cause"
    budget = budgets.of_device(recording, device)
    resident = "" if exact else "estimate"
    if exact and budget is not None:
        resident = budgets.KEPT
    rows = [
        (
            "Peak footprint",
            words.size(figures.peak_footprint_bytes),
            "" if factor == words.UNKNOWN else f"{factor} times capacity",
        ),
        (
            "Managed capacity",
            words.size(device.capacity_bytes or None),
            f"of {words.size(device.total_bytes)} on the device" if device.total_bytes else "",
        ),
        ("Peak resident", words.size(figures.peak_resident_bytes), resident),
        ("Moved to the device", words.size(figures.host_to_device_bytes), ""),
        ("Moved to the host", words.size(figures.device_to_host_bytes), ""),
        ("Evicted" if budget is None else "Evicted by the driver", words.size(evicted), how),
        (
            "Prefetched",
            words.size(figures.prefetched_bytes),
            "at most; by rmm_uvm" + ", beside what the budget fetched" * (budget is not None),
        ),
        ("Discarded", words.size(figures.discarded_bytes), "at most; and so not copied"),
        ("GPU faults", words.count(figures.gpu_faults), ""),
        ("CPU faults", words.count(figures.cpu_faults), ""),
    ]
    kept = [row for row in rows if row[1] != words.UNKNOWN]
    return FigureGrid(tuple(FigureCell(*row) for row in (*kept, *budgets.cells(budget))))


def _background(recording: Recording, prefix: str) -> Iterator[Section]:
    """Yield what is to be looked up: blocks, all warnings, sources, settings."""
    if recording.busiest:
        busiest = tuple(
            (f"{address:#x}", words.size(there), words.size(back))
            for address, there, back in recording.busiest
        )
        titles = titled(("Address", "To device", "To host"))
        table = Table(titles, busiest, "Blocks of 2 MiB that moved most")
        yield Section("Where in memory", (table,), f"{prefix}busiest")
    notes = Bullets(tuple(_notes(recording)))
    yield Section("How to read this", (notes,), f"{prefix}notes")
    if recording.findings:
        rows = tuple(
            (
                words.clock_text(f.time_seconds),
                str(f.device_id),
                f.kind,
                words.plain_name(f.message, 300),
            )
            for f in recording.findings[:_MOST_FINDINGS]
        )
        caption = _findings_caption(recording)
        table = Table(titled(_FINDING_TITLES, right=False), rows, caption)
        yield Section("All warnings", (table,), f"{prefix}warnings")
    sources = [
        (words.plain_name(name), "on" if why else f"off: {words.plain_name(why.reason, 300)}")
        for name, why in recording.sources.items()
    ]
    pairs = titled(("", ""), right=False)
    told = (Table(pairs, tuple(sources)),)
    yield Section("Where the figures come from", told, f"{prefix}sources")
    told = (Table(pairs, tuple(_settings(recording))),)
    yield Section("Machine and settings", told, f"{prefix}settings")


def _findings_caption(recording: Recording) -> str:
    shown, there = min(len(recording.findings), _MOST_FINDINGS), len(recording.findings)
    return (
        f"{there} warning{'s' * (there != 1)}"
        if shown == there
        else f"The first {shown} of {there} warnings"
    )


def _notes(recording: Recording) -> list[str]:
    notes = [
        "Footprint is what the program has allocated and not freed. Above the managed capacity, "
        "pages have to leave the device before others can come. Peaks are those of samples: what "
        "was allocated and freed between two of them is in a trace only.",
        "Sizes are in binary units (1 GiB = 1024³ bytes), rates in decimal ones "
        "(1 GB/s = 10⁹ bytes a second). A dash: not known.",
        "Evicted bytes are an estimate unless told by cause: what left a full device and was not "
        "asked for.",
    ]
    if any(not DeviceSeries(recording.of(d.device_id)).resident_exact for d in recording.devices):
        notes.append(
            "Resident bytes are an estimate: what was allocated less what left and did not "
            "come back."
        )
    if recording.budgets:
        notes.append(
            "A budget binds what rmm_uvm moves. What kernels faulted in beside it is estimated "
            "from bytes. Its figures count since the pool was made. What left for it is in the "
            "bytes moved to the host, and not among those that the kernel driver evicted."
        )
    if any(budget.get("neighbor_bytes") for budget in recording.budgets.values()):
        notes.append(
            "Neighbours are other devices: their idle memory takes what leaves before the host "
            "does. Bytes between two devices are in no chart."
        )
    if recording.stages:
        notes.append(
            "A stage's bytes are those that the whole process moved while it ran; stages that "
            "nest or run side by side count the same bytes. Edges between two samples split what "
            "moved in proportion of time."
        )
    if len(recording.samples) > 10_000:
        notes.append(
            f"The charts show a choice of the {len(recording.samples):,} samples: every peak and "
            "every low is in it. The figures are of all samples."
        )
    return notes


def _settings(recording: Recording) -> list[tuple[str, str]]:
    rows = [
        (words.plain_name(name), words.plain_name(text, 1000))
        for name, text in recording.about.items()
    ]
    for device in recording.devices:
        text = f"{words.plain_name(device.name)}, {words.plain_name(device.uuid)}"
        rows.append((f"device {device.device_id}", text))
        if device.chain:
            chain = " over ".join(words.plain_name(name) for name in device.chain)
            rows.append((f"memory resources {device.device_id}", chain))
    for given in (recording.settings, recording.versions):
        rows += [
            (words.plain_name(name), words.plain_name(text, 300)) for name, text in given.items()
        ]
    return rows
