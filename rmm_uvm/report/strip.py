# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The strip above the charts: stages as labelled bands, findings as numbered marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rmm_uvm.report import axes, style, words
from rmm_uvm.report.advice import about, collect
from rmm_uvm.report.charts import Chart
from rmm_uvm.report.figures import end_of
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import Recording, Stage

__all__ = ["mark_findings", "marks_seconds", "shown_findings", "strip"]

_LANE_PIXELS = 24
_MOST_LANES = 8
_MOST_BANDS = 80
_MOST_MARKS = 300
_NAME_LETTERS = 80


def shown_findings(recording: Recording, device_id: int) -> list[Finding]:
    """Return the findings of a device that get a mark: where they crowd, the worst of each kind."""
    findings = [one for one in recording.findings if one.device_id == device_id]
    if len(findings) <= _MOST_MARKS:
        return findings
    width = max(recording.duration_seconds, 1e-9) * len(style.MARKERS) / _MOST_MARKS
    worst: dict[tuple[str, int], Finding] = {}
    for one in findings:
        place = (one.kind, int(one.time_seconds / width))
        if place not in worst or one.value > worst[place].value:
            worst[place] = one
    return sorted(worst.values(), key=lambda one: one.time_seconds)


def shown_stages(recording: Recording) -> list[Stage]:
    """Return the stages that get a band: the longest, in order of their begin."""
    stages = sorted(recording.stages, key=lambda s: s.begin_seconds - end_of(s, recording))
    lanes = {lane: None for lane in map(_lane, recording.stages)}
    drawn = set(list(lanes)[:_MOST_LANES])
    longest = [stage for stage in stages if _lane(stage) in drawn][:_MOST_BANDS]
    return sorted(longest, key=lambda stage: stage.begin_seconds)


def marks_seconds(recording: Recording) -> list[float]:
    """Return the times that thinning has to keep: findings and edges of stages that are shown."""
    times = [
        f.time_seconds for d in recording.devices for f in shown_findings(recording, d.device_id)
    ]
    for stage in shown_stages(recording):
        times += [stage.begin_seconds, end_of(stage, recording)]
    return [time for time in times if math.isfinite(time)]


def strip(recording: Recording, device_id: int, x_range: Any) -> Chart | None:
    """Return the strip of a device, None where there is neither stage nor finding."""
    stages, findings = shown_stages(recording), shown_findings(recording, device_id)
    if not stages and not findings:
        return None
    order = {lane: None for lane in map(_lane, recording.stages) if lane in set(map(_lane, stages))}
    lanes = {lane: number for number, lane in enumerate(sorted(order, key=_rank(list(order))))}
    n_rows = len(lanes) + bool(findings)
    height = n_rows * _LANE_PIXELS + 12
    chart = axes.panel(x_range, height, "", bare=True)
    chart.y_range.start, chart.y_range.end = n_rows, 0
    top = 1 if findings else 0
    if stages:
        _bands(chart, recording, stages, lanes, top)
    if findings:
        _marks(chart, recording, findings)
    caption = f"{len(recording.stages)} stages, {len(findings)} warnings."
    return Chart(f"strip_{device_id}", "Stages and warnings", chart, (), caption, height)


def mark_findings(chart: Any, findings: Sequence[Finding]) -> None:
    """Draw a thin line through a chart at each finding."""
    if not findings:
        return
    times = sorted({finding.time_seconds for finding in findings})
    chart.vspan(
        x=times, line_color=style.WARNING_COLOUR, line_dash=[1, 3], line_width=1.2, level="underlay"
    )


def _lane(stage: Stage) -> tuple[str, int]:
    return stage.thread, stage.depth


def _rank(order: Sequence[tuple[str, int]]) -> Any:
    """Return a sorting key: threads in order of appearance, outer stages above inner ones."""
    threads = list(dict.fromkeys(thread for thread, _ in order))
    return lambda lane: (threads.index(lane[0]), lane[1])


def _bands(
    chart: Any,
    recording: Recording,
    stages: Sequence[Stage],
    lanes: dict[tuple[str, int], int],
    top: int,
) -> None:
    from bokeh.models import ColumnDataSource, HoverTool

    fills = {
        name: style.STAGE_FILLS[i % len(style.STAGE_FILLS)]
        for i, name in enumerate(dict.fromkeys(s.name for s in stages))
    }
    bands = []
    for lane, number in lanes.items():
        mine = [stage for stage in stages if _lane(stage) == lane]
        for stage in mine:
            begin, end = stage.begin_seconds, end_of(stage, recording)
            upper, name = top + number, words.plain_name(stage.name, _NAME_LETTERS)
            data = {
                "left": [begin],
                "right": [end],
                "top": [upper + 0.06],
                "bottom": [upper + 0.94],
                "middle": [upper + 0.5],
                "name": [name],
                "seconds": [words.clock_text(end - begin)],
                "thread": [words.plain_name(stage.thread, _NAME_LETTERS) if stage.thread else "-"],
            }
            source = ColumnDataSource(data)
            band = chart.quad(
                left="left", right="right", top="top", bottom="bottom", source=source,
                fill_color=fills[stage.name], line_color="#6B6B6B", line_width=0.8,
            )  # fmt: skip
            bands.append(band)
            # A long name runs on until the next band of its lane is drawn over it, at any zoom.
            chart.text(
                "left", "middle", "name", source=source, x_offset=5, text_baseline="middle",
                text_font_size="12px", text_color="#111111",
            )  # fmt: skip
    tooltips = [("stage", "@name"), ("time", "@seconds"), ("thread", "@thread")]
    chart.add_tools(HoverTool(tooltips=tooltips, renderers=bands))


def _marks(chart: Any, recording: Recording, findings: Sequence[Finding]) -> None:
    from bokeh.models import ColumnDataSource, HoverTool

    advice = enumerate(collect(recording.findings), start=1)
    number_of = {about(one.finding): number for number, one in advice}
    source = ColumnDataSource(
        {
            "seconds": [one.time_seconds for one in findings],
            "row": [0.5] * len(findings),
            "number": [str(number_of[about(one)]) for one in findings],
            "marker": [style.MARKERS.get(one.kind, "circle") for one in findings],
            "time": [words.clock_text(one.time_seconds) for one in findings],
            "message": [words.plain_name(one.message, 300) for one in findings],
            "remedy": [words.plain_name(one.remedy, 300) for one in findings],
        }
    )
    marks = chart.scatter(
        "seconds", "row", source=source, marker="marker", size=11,
        fill_color=style.WARNING_COLOUR, line_color="#000000", line_width=0.8,
    )  # fmt: skip
    chart.text(
        "seconds", "row", "number", source=source, x_offset=8, text_baseline="middle",
        text_font_size="12px", text_font_style="bold", text_color="#111111",
    )  # fmt: skip
    tooltips = [("warning", "@message"), ("what to do", "@remedy"), ("at", "@time")]
    chart.add_tools(HoverTool(tooltips=tooltips, renderers=[marks]))
