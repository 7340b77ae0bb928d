# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Workers beside one another, as bars: what they held, and what they moved.

Does not cover what one worker did over time; see `rmm_uvm.report.charts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm.dask.reports.advice import WorkerSums
from rmm_uvm.report import style, words
from rmm_uvm.report.document import Axis, Bars, Chart, Mark
from rmm_uvm.report.style import CAPACITY, ELSEWHERE, Fill

__all__ = ["charts"]

_ROW_PIXELS = 30
_MOST_BARS = 64
_WITHIN = Fill("within the managed capacity", style.AREA_COLOUR)


def charts(told: Sequence[WorkerSums]) -> list[Chart]:
    """Return the charts of those workers of which something is known; none of fewer than two."""
    known = [one for one in told if one.peak_footprint_bytes is not None]
    moved = [one for one in told if one.moved_bytes is not None]
    made = [_memory(known[:_MOST_BARS])] if len(known) > 1 else []
    return made + ([_moved(moved[:_MOST_BARS])] if len(moved) > 1 else [])


def _memory(told: Sequence[WorkerSums]) -> Chart:
    levels = [max(one.peak_footprint_bytes or 0, one.capacity_bytes or 0) for one in told]
    scale, unit = words.memory_unit(max(levels))
    footprints = [(one.peak_footprint_bytes or 0) / scale for one in told]
    capacities = [(one.capacity_bytes or float("nan")) / scale for one in told]
    data = {
        "worker": _names(told),
        "footprint": footprints,
        "within": [
            min(footprint, capacity) if capacity == capacity else footprint
            for footprint, capacity in zip(footprints, capacities, strict=True)
        ],
        "capacity": capacities,
        "footprint_text": [words.size(one.peak_footprint_bytes) for one in told],
        "capacity_text": [words.size(one.capacity_bytes) for one in told],
        "factor": [words.UNKNOWN if one.factor is None else f"{one.factor:.2f}" for one in told],
    }
    hover = (
        ("worker", "@worker"),
        ("footprint", "@footprint_text"),
        ("capacity", "@capacity_text"),
        ("factor", "@factor"),
    )
    fullest = max(told, key=lambda one: one.factor or 0.0)
    over = sum((one.factor or 0.0) > 1.0 for one in told)
    caption = (
        f"{over} of {len(told)} workers held more than fits on their device; the fullest was "
        f"worker {words.plain_name(fullest.name)} with {words.size(fullest.peak_footprint_bytes)}."
    )
    if not any(one.peak_footprint_bytes for one in told):
        caption = f"In no sample of the {len(told)} workers was anything allocated."
    marks = (
        Bars(data, "within", _WITHIN, hover=hover),
        Bars(data, "footprint", ELSEWHERE, left="within"),
        Bars(data, "capacity", CAPACITY, is_tick=True),
    )
    title = "Peak footprint of each worker"
    return _chart("cluster_memory", title, caption, told, max(levels) / scale, unit, marks)


def _moved(told: Sequence[WorkerSums]) -> Chart:
    names = ("host_to_device_bytes", "device_to_host_bytes")
    columns = {name: [getattr(one.figures, name) for one in told] for name in names}
    most = max(value for values in columns.values() for value in values)
    scale, unit = words.memory_unit(most)
    data = {
        "worker": _names(told),
        **{name: [value / scale for value in values] for name, values in columns.items()},
        **{f"{name}_text": [words.size(v) for v in values] for name, values in columns.items()},
        "evicted": [words.size(one.figures.evicted_bytes_estimate) for one in told],
    }
    lines = [style.LINES[name] for name in names]
    hover = (
        ("worker", "@worker"),
        *((line.label, f"@{name}_text") for line, name in zip(lines, names, strict=True)),
        ("evicted (estimate)", "@evicted"),
    )
    to_device, to_host = lines
    marks = (
        Bars(data, names[0], Fill(to_device.label, to_device.colour, alpha=0.8), offset=0.19,
             height=0.32, hover=hover),
        Bars(data, names[1], Fill(to_host.label, to_host.colour, "right_diagonal_line",
             style.RISING_STROKES, 0.8, "#FFFFFF"), offset=-0.19, height=0.32),
    )  # fmt: skip
    busiest = max(told, key=lambda one: one.moved_bytes or 0)
    caption = (
        f"{words.size(sum(one.moved_bytes or 0 for one in told))} were moved in all, "
        f"{words.size(busiest.moved_bytes)} of them by worker {words.plain_name(busiest.name)}."
    )
    end = max(most / scale, 1.0)
    return _chart("cluster_moved", "Moved by each worker", caption, told, end, unit, marks)


def _chart(
    name: str,
    title: str,
    caption: str,
    told: Sequence[WorkerSums],
    most: float,
    unit: str,
    marks: tuple[Mark, ...],
) -> Chart:
    rows: list[str] = []
    for label in _names(told, 16):
        while label in rows:  # told apart where two are alike
            label += "'"
        rows.append(label)
    height = 80 + _ROW_PIXELS * len(told)
    x, y = Axis(most * 1.05, unit), Axis(rows=tuple(rows))
    return Chart(name, title, caption, x, y, marks, height)


def _names(told: Sequence[WorkerSums], most: int = 120) -> list[str]:
    return [words.plain_name(one.name, most) for one in told]
