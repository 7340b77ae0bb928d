# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The charts of a plan: slowdown against capacity, and memory over time on each card."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.outcome import Card, PlanFigures
from rmm_uvm.planner.views.headline import enough_text
from rmm_uvm.report import axes, style
from rmm_uvm.report.charts import Chart, Key
from rmm_uvm.support.units import format_bytes

__all__ = ["memory_over_time", "slowdown_against_capacity"]

_HEIGHT = 280
_DEFAULTS = style.Line("defaults", "#0072B2", (), 2.0)
_ADVISED, _ADVISED_COLOUR = "advised settings", "#009E73"
_FITTING = style.Line("as if it fitted", "#999999", (2, 3))


def slowdown_against_capacity(plan: PlanFigures) -> Chart:
    """Return the chart of time, over that with room for everything, against managed capacity."""
    from bokeh.models import BasicTicker, HoverTool, NumeralTickFormatter, Range1d, Span

    most_bytes = max(max(size for size, _ in plan.curve), plan.cards[-1].capacity_bytes)
    scale, unit = axes.memory_unit(most_bytes)
    end = most_bytes / scale * 1.03
    chart = axes.panel(Range1d(0, end, bounds=(0, end)), _HEIGHT, "times as long")
    chart.xaxis.axis_label = f"device memory for managed data, {unit}"
    chart.xaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    chart.xaxis.ticker = BasicTicker()
    advised = [(card.capacity_bytes, card.advised.slowdown) for card in plan.cards]
    slows = [slow for _, slow in (*plan.curve, *advised) if slow is not None]
    chart.y_range.end = max([*slows, 1.0]) * 1.08
    chart.add_layout(
        Span(
            location=1.0,
            dimension="width",
            line_color=_FITTING.colour,
            line_dash=list(_FITTING.dash),
            line_width=_FITTING.width,
        )
    )
    source = _against(plan.curve, scale)
    _line(chart.line, _DEFAULTS, "x", "y", source)
    points = [chart.scatter("x", "y", source=source, size=8, color=_DEFAULTS.colour)]
    # Without a line: what was advised was tried on these cards, and between them on none.
    points.append(
        chart.scatter(
            "x",
            "y",
            source=_against(advised, scale),
            size=9,
            marker="square",
            fill_color=None,
            line_color=_ADVISED_COLOUR,
            line_width=2,
        )
    )
    tooltips = [("memory", "@size"), ("times as long", "@y{0.00}")]
    chart.add_tools(HoverTool(tooltips=tooltips, renderers=points))
    ran_out = [size for size, slow in plan.curve if slow is None]
    caption = enough_text(plan)
    if ran_out:
        caption += f" At {_sizes(ran_out)} it runs out of memory."
    advised_key = Key(_ADVISED, _ADVISED_COLOUR, marker=True)
    legend = (_key(_DEFAULTS), advised_key, _key(_FITTING))
    return Chart("slowdown", "Time against capacity", chart, legend, caption, _HEIGHT)


def memory_over_time(card: Card, number: int, seconds: float) -> Chart:
    """Return the chart of what is allocated and what resides on the card, with the defaults.

    Parameters
    ----------
    card : Card
        Which card.
    number : int
        Its place in the plan, for a name of its own.
    seconds : float
        Time of the whole recording, to whose end the last levels last.
    """
    from bokeh.models import HoverTool, Span

    result, timeline = card.defaults.result, card.defaults.result.timeline
    top = max(float(np.max(timeline.live_bytes, initial=0)), float(card.capacity_bytes))
    scale, unit = axes.memory_unit(top)
    chart = axes.panel(axes.shared_range(seconds), _HEIGHT, unit)
    chart.y_range.end = top / scale * 1.08
    source = _source(
        seconds=np.append(timeline.seconds, max([seconds, *timeline.seconds[-1:]])),
        live=_lasting(timeline.live_bytes / scale),
        resident=_lasting(timeline.resident_bytes / scale),
    )
    live = dataclasses.replace(style.LINES["footprint_bytes"], label="allocated")
    resident, capacity = style.LINES["resident_bytes"], style.LINES["capacity_bytes"]
    chart.varea_step(
        "seconds",
        0,
        "resident",
        source=source,
        step_mode="after",
        color=style.AREA_COLOUR,
        alpha=0.3,
    )
    drawn = _line(chart.step, live, "seconds", "live", source, mode="after")
    _line(chart.step, resident, "seconds", "resident", source, mode="after")
    chart.add_layout(
        Span(
            location=card.capacity_bytes / scale,
            dimension="width",
            line_color=capacity.colour,
            line_dash=list(capacity.dash),
            line_width=capacity.width,
        )
    )
    tooltips = [
        ("at", axes.time_tooltip(seconds, "seconds")),
        ("allocated", f"@live{{0.00}} {unit}"),
        ("resident", f"@resident{{0.00}} {unit}"),
    ]
    chart.add_tools(HoverTool(tooltips=tooltips, renderers=[drawn], mode="vline"))
    caption = (
        f"Allocated at most {format_bytes(result.peak_live_bytes)}, resident at most "
        f"{format_bytes(result.peak_resident_bytes)} of {format_bytes(card.capacity_bytes)}. The "
        "time is that of the recording."
    )
    legend = (_key(live), _key(resident, area=style.AREA_COLOUR), _key(capacity))
    return Chart(f"memory_{number}", "Memory over time", chart, legend, caption, _HEIGHT)


def _lasting(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(levels, levels[-1:] if len(levels) else 0.0)


def _sizes(sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return format_bytes(sizes[0])
    return f"{len(sizes)} sizes, up to {format_bytes(max(sizes))},"


def _line(
    draw: Callable[..., Any], line: style.Line, x: str, y: str, source: Any, **others: Any
) -> Any:
    return draw(
        x,
        y,
        source=source,
        line_color=line.colour,
        line_dash=list(line.dash),
        line_width=line.width,
        **others,
    )


def _against(curve: Sequence[tuple[int, float | None]], scale: float) -> Any:
    return _source(
        x=[size / scale for size, _ in curve],
        # Neither mark nor line for what runs out of memory, and no line over it.
        y=[math.nan if slow is None else slow for _, slow in curve],
        size=[format_bytes(size) for size, _ in curve],
    )


def _source(**columns: Any) -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource(columns)


def _key(line: style.Line, area: str = "") -> Key:
    return Key(line.label, line.colour, " ".join(map(str, line.dash)), area)
