# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The strip above the charts: stages as labelled bands, findings as numbered marks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording, Stage
from rmm_uvm.report import style, words
from rmm_uvm.report.advice import about, collect
from rmm_uvm.report.document import Axis, Bands, Chart, Dots, Mark
from rmm_uvm.report.drawing import ROOM_RIGHT
from rmm_uvm.report.figures import end_of

__all__ = ["marks_seconds", "shown_findings", "strip"]

_LANE_PIXELS = 24
_MOST_LANES = 8
_MOST_BANDS = 300
_MOST_NAMED = 50
_FEWEST_NAMED = 8
_NARROWEST_FRACTION = 0.02  # of the time: narrower bands have no room for a name
_MOST_MARKS = 300
_MARK_FRACTION = 0.04  # of the time shown, that a mark and its number take
_MOST_LEVELS = 3
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


def strip(recording: Recording, device_id: int, n_charted: int = 1) -> Chart | None:
    """Return the strip of a device, None where there is neither stage nor finding.

    Parameters
    ----------
    recording : Recording
        What to show.
    device_id : int
        CUDA ordinal.
    n_charted : int
        Devices on the whole page: of many, each has fewer names on its bands.
    """
    stages, findings = shown_stages(recording), shown_findings(recording, device_id)
    if not stages and not findings:
        return None
    order = {lane: None for lane in map(_lane, recording.stages) if lane in set(map(_lane, stages))}
    lanes = {lane: number for number, lane in enumerate(sorted(order, key=_rank(list(order))))}
    levels = mark_levels([one.time_seconds for one in findings], recording.duration_seconds)
    top = max(levels, default=-1) + 1
    n_rows = len(lanes) + top
    most_named = max(_MOST_NAMED // max(n_charted, 1), _FEWEST_NAMED)
    marks: list[Mark] = list(_bands(recording, stages, lanes, top, most_named))
    if findings:
        marks.append(_marks(recording, findings, levels))
    return Chart(
        "strip",
        "Stages and warnings",
        f"{_number(recording.stages, 'stage')}, {_number(findings, 'warning')}.",
        Axis(recording.duration_seconds, is_time=True),
        Axis(n_rows),
        tuple(marks),
        n_rows * _LANE_PIXELS + 12,
        is_bare=True,
    )


def _number(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _lane(stage: Stage) -> tuple[str, int]:
    return stage.thread, stage.depth


def _rank(order: Sequence[tuple[str, int]]) -> Any:
    """Return a sorting key: threads in order of appearance, outer stages above inner ones."""
    threads = list(dict.fromkeys(thread for thread, _ in order))
    return lambda lane: (threads.index(lane[0]), lane[1])


def _bands(
    recording: Recording,
    stages: Sequence[Stage],
    lanes: dict[tuple[str, int], int],
    top: int,
    most_named: int,
) -> Iterator[Bands]:
    """Yield stages: those wide enough for a name, then all others."""
    names = dict.fromkeys(stage.name for stage in stages)
    fills = {n: style.STAGE_FILLS[i % len(style.STAGE_FILLS)] for i, n in enumerate(names)}
    narrowest = _NARROWEST_FRACTION * (1 + ROOM_RIGHT) * max(recording.duration_seconds, 1e-3)
    rows = [_band(s, recording, top + lanes[_lane(s)], fills[s.name]) for s in stages]
    widest = sorted(rows, key=lambda row: row["left"] - row["right"])[:most_named]
    wide = {id(row) for row in widest if row["right"] - row["left"] >= narrowest}
    hover = (("stage", "@name"), ("time", "@seconds"), ("thread", "@thread"))
    for is_named in (True, False):
        if chosen := [row for row in rows if (id(row) in wide) == is_named]:
            data = {name: [row[name] for row in chosen] for name in chosen[0]}
            yield Bands(data, is_named, hover)


def _band(stage: Stage, recording: Recording, row: int, fill: str) -> dict[str, Any]:
    end = end_of(stage, recording)
    return {
        "left": stage.begin_seconds,
        "right": end,
        "top": row + 0.06,
        "bottom": row + 0.94,
        "middle": row + 0.5,
        "fill": fill,
        "name": words.plain_name(stage.name, _NAME_LETTERS),
        "seconds": words.clock_text(end - stage.begin_seconds),
        "thread": words.plain_name(stage.thread, _NAME_LETTERS) if stage.thread else "-",
    }


def mark_levels(times_seconds: Sequence[float], duration_seconds: float) -> list[int]:
    """Return the row of each mark: one below the other where their numbers would overlap.

    Examples
    --------
    >>> mark_levels([1.0, 1.0, 50.0], 100.0)
    [0, 1, 0]
    """
    room = _MARK_FRACTION * duration_seconds
    last: list[float] = []
    levels = [0] * len(times_seconds)
    for place in sorted(range(len(times_seconds)), key=times_seconds.__getitem__):
        time = times_seconds[place]
        free = [level for level, before in enumerate(last) if time - before >= room]
        if not free and len(last) < _MOST_LEVELS:
            free = [len(last)]
            last.append(time)
        level = free[0] if free else min(range(len(last)), key=last.__getitem__)
        levels[place], last[level] = level, time
    return levels


def _marks(recording: Recording, findings: Sequence[Finding], levels: Sequence[int]) -> Dots:
    advice = enumerate(collect(recording.findings), start=1)
    number_of = {about(one.finding): number for number, one in advice}
    data = {
        "seconds": [one.time_seconds for one in findings],
        "row": [level + 0.5 for level in levels],
        "number": [str(number_of[about(one)]) for one in findings],
        "marker": [style.MARKERS.get(one.kind, "circle") for one in findings],
        "time": [words.clock_text(one.time_seconds) for one in findings],
        "message": [_in_tooltip(one.message) for one in findings],
        "remedy": [_in_tooltip(one.remedy) for one in findings],
    }
    hover = (("warning", "@message"), ("what to do", "@remedy"), ("at", "@time"))
    return Dots(
        data, "seconds", "row", "", style.WARNING_COLOUR, "marker", size=11, edge="#000000",
        text="number", hover=hover,
    )  # fmt: skip


def _in_tooltip(text: str) -> str:
    return words.COMMAND.sub(r"\1", words.plain_name(text, 300))
