# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Workers beside one another, as bars: what they held, and what they moved.

Does not cover what one worker did over time; see `rmm_uvm.report.charts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmm_uvm.dask.reports.advice import WorkerSums
from rmm_uvm.report import axes, style, words
from rmm_uvm.report.charts import Chart, Key

__all__ = ["charts"]

_ROW_PIXELS = 30
_MOST_BARS = 64
_STRIPES = "M2 12L10 0M10 12L18 0M18 12L26 0"
_ELSEWHERE = "#E69F00"


def charts(told: Sequence[WorkerSums]) -> list[Chart]:
    """Return the charts of those workers of which something is known; none of fewer than two."""
    known = [one for one in told if one.peak_footprint_bytes is not None]
    moved = [one for one in told if one.moved_bytes is not None]
    made = [_memory(known[:_MOST_BARS])] if len(known) > 1 else []
    return made + ([_moved(moved[:_MOST_BARS])] if len(moved) > 1 else [])


def _memory(told: Sequence[WorkerSums]) -> Chart:
    levels = [max(one.peak_footprint_bytes or 0, one.capacity_bytes or 0) for one in told]
    scale, unit = axes.memory_unit(max(levels))
    chart = _panel(told, unit, max(levels) / scale)
    footprints = [(one.peak_footprint_bytes or 0) / scale for one in told]
    capacities = [(one.capacity_bytes or float("nan")) / scale for one in told]
    within = [
        min(footprint, capacity) if capacity == capacity else footprint
        for footprint, capacity in zip(footprints, capacities, strict=True)
    ]
    source = _source(
        told,
        footprint=footprints,
        within=within,
        capacity=capacities,
        footprint_text=[words.size(one.peak_footprint_bytes) for one in told],
        capacity_text=[words.size(one.capacity_bytes) for one in told],
        factor=[words.UNKNOWN if one.factor is None else f"{one.factor:.2f}" for one in told],
    )
    bars = chart.hbar(
        y="row", left=0, right="footprint", height=0.62, source=source, line_width=0,
        fill_color=_ELSEWHERE, fill_alpha=0.45, hatch_pattern="right_diagonal_line",
        hatch_color=_ELSEWHERE, hatch_weight=1,
    )  # fmt: skip
    chart.hbar(
        y="row", left=0, right="within", height=0.62, source=source, line_width=0,
        fill_color=style.AREA_COLOUR,
    )  # fmt: skip
    chart.scatter(
        "capacity", "row", source=source, marker="dash", angle=1.5708, size=24,
        line_color="#111111", line_width=3,
    )  # fmt: skip
    _hover(
        chart,
        bars,
        [("footprint", "@footprint_text"), ("capacity", "@capacity_text"), ("factor", "@factor")],
    )
    legend = (
        Key("within the managed capacity", style.AREA_COLOUR, hatch=""),
        Key("more than fits", _ELSEWHERE, hatch=_STRIPES),
        Key("managed capacity", "#111111"),
    )
    fullest = max(told, key=lambda one: one.factor or 0.0)
    over = sum((one.factor or 0.0) > 1.0 for one in told)
    caption = (
        f"{over} of {len(told)} workers held more than fits on their device; the fullest was "
        f"worker {words.plain_name(fullest.name)} with {words.size(fullest.peak_footprint_bytes)}."
    )
    if not any(one.peak_footprint_bytes for one in told):
        caption = f"In no sample of the {len(told)} workers was anything allocated."
    return Chart(
        "cluster_memory", "Peak footprint of each worker", chart, legend, caption, _height(told)
    )


def _moved(told: Sequence[WorkerSums]) -> Chart:
    from bokeh.transform import dodge

    names = ("host_to_device_bytes", "device_to_host_bytes")
    columns = {name: [getattr(one.figures, name) for one in told] for name in names}
    most = max(value for values in columns.values() for value in values)
    scale, unit = axes.memory_unit(most)
    chart = _panel(told, unit, max(most / scale, 1.0))
    source = _source(
        told,
        **{name: [value / scale for value in values] for name, values in columns.items()},
        **{f"{name}_text": [words.size(v) for v in values] for name, values in columns.items()},
        evicted=[words.size(one.figures.evicted_bytes_estimate) for one in told],
    )
    legend = []
    first: Any = None
    for name, offset, strokes in zip(names, (0.19, -0.19), ("", _STRIPES), strict=True):
        line = style.LINES[name]
        bars = chart.hbar(
            y=dodge("row", offset, range=chart.y_range), left=0, right=name, height=0.32,
            source=source, line_width=0, fill_color=line.colour, fill_alpha=0.8,
            hatch_pattern="right_diagonal_line" if strokes else None, hatch_color="#FFFFFF",
        )  # fmt: skip
        first = first or bars
        legend.append(Key(line.label, line.colour, hatch=strokes))
    rows = [(style.LINES[name].label, f"@{name}_text") for name in names]
    _hover(chart, first, [*rows, ("evicted (estimate)", "@evicted")])
    busiest = max(told, key=lambda one: one.moved_bytes or 0)
    caption = (
        f"{words.size(sum(one.moved_bytes or 0 for one in told))} were moved in all, "
        f"{words.size(busiest.moved_bytes)} of them by worker {words.plain_name(busiest.name)}."
    )
    return Chart(
        "cluster_moved", "Moved by each worker", chart, tuple(legend), caption, _height(told)
    )


def _panel(told: Sequence[WorkerSums], unit: str, most: float) -> Any:
    from bokeh.models import FactorRange, NumeralTickFormatter
    from bokeh.plotting import figure

    chart = figure(
        height=_height(told),
        sizing_mode="stretch_width",
        x_range=(0, most * 1.05),
        y_range=FactorRange(*reversed(_rows(told)), range_padding=0.1),
        tools="",
        toolbar_location=None,
        output_backend="canvas",
        outline_line_color="#8A8A8A",
        background_fill_color="#FFFFFF",
    )
    chart.grid.grid_line_color = "#E3E3E3"
    chart.ygrid.visible = False
    chart.axis.axis_label_text_font_style = "normal"
    chart.axis.major_label_text_font_size = chart.axis.axis_label_text_font_size = "12px"
    chart.axis.major_label_text_color = chart.axis.axis_label_text_color = "#222222"
    chart.axis.minor_tick_line_color = None
    chart.xaxis.axis_label = unit
    chart.xaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    chart.xaxis.ticker.desired_num_ticks = 5
    return chart


def _rows(told: Sequence[WorkerSums]) -> list[str]:
    """Return labels of the rows: names, told apart where two are alike."""
    labels: list[str] = []
    for one in told:
        label = words.plain_name(one.name, 16)
        while label in labels:
            label += "'"
        labels.append(label)
    return labels


def _source(told: Sequence[WorkerSums], **columns: Any) -> Any:
    from bokeh.models import ColumnDataSource

    names = [words.plain_name(one.name) for one in told]
    return ColumnDataSource({"row": _rows(told), "worker": names, **columns})


def _hover(chart: Any, bars: Any, rows: Sequence[tuple[str, str]]) -> None:
    from bokeh.models import HoverTool

    tooltips = [("worker", "@worker"), *rows]
    chart.add_tools(HoverTool(tooltips=tooltips, mode="hline", renderers=[bars]))


def _height(told: Sequence[WorkerSums]) -> int:
    return 80 + _ROW_PIXELS * len(told)
