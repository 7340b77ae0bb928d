# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The charts of a plan: slowdown against capacity, and memory over time on each card."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rmm_uvm.planner.outcome import Card, PlanFigures
from rmm_uvm.planner.views.headline import enough_text
from rmm_uvm.report import style, words
from rmm_uvm.report.document import Axis, Chart, Curve, Dots, Level
from rmm_uvm.report.drawing import time_tooltip
from rmm_uvm.support.units import format_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["memory_over_time", "slowdown_against_capacity"]

_HEIGHT = 280
_DEFAULTS = style.Line("defaults", "#0072B2", (), 2.0)
_ADVISED_COLOUR = "#009E73"
_FITTING = style.Line("as if it fitted", "#999999", (2, 3))


def slowdown_against_capacity(plan: PlanFigures) -> Chart:
    """Return the chart of time, over that with room for everything, against managed capacity."""
    most_bytes = max(max(size for size, _ in plan.curve), plan.cards[-1].capacity_bytes)
    scale, unit = words.memory_unit(most_bytes)
    advised = [(card.capacity_bytes, card.advised.slowdown) for card in plan.cards]
    slows = [slow for _, slow in (*plan.curve, *advised) if slow is not None]
    data = _against(plan.curve, scale)
    hover = (("memory", "@size"), ("times as long", "@y{0.00}"))
    ran_out = [size for size, slow in plan.curve if slow is None]
    caption = enough_text(plan)
    if ran_out:
        caption += f" At {_sizes(ran_out)} it runs out of memory."
    return Chart(
        "slowdown",
        "Time against capacity",
        caption,
        Axis(most_bytes / scale * 1.03, f"device memory for managed data, {unit}"),
        Axis(max([*slows, 1.0]) * 1.08, "times as long"),
        (
            Curve(data, "x", "y", _DEFAULTS),
            Dots(data, "x", "y", "", _DEFAULTS.colour, hover=hover),
            # Without a line: what was advised was tried on these cards, and between them on none.
            Dots(
                _against(advised, scale), "x", "y", "advised settings", _ADVISED_COLOUR, "square",
                size=9, hollow=True, hover=hover,
            ),
            Level(1.0, _FITTING),
        ),
        _HEIGHT,
    )  # fmt: skip


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
    result, timeline = card.defaults.result, card.defaults.result.timeline
    top = max([*timeline.live_bytes.tolist(), float(card.capacity_bytes)])
    scale, unit = words.memory_unit(top)
    data = {
        "seconds": [*timeline.seconds, max([seconds, *timeline.seconds[-1:]])],
        "live": _lasting(timeline.live_bytes / scale),
        "resident": _lasting(timeline.resident_bytes / scale),
    }
    hover = (
        ("at", time_tooltip(seconds, "seconds")),
        ("allocated", f"@live{{0.00}} {unit}"),
        ("resident", f"@resident{{0.00}} {unit}"),
    )
    live = dataclasses.replace(style.LINES["footprint_bytes"], label="allocated")
    resident = style.LINES["resident_bytes"]
    return Chart(
        f"memory_{number}",
        "Memory over time",
        f"Allocated at most {format_bytes(result.peak_live_bytes)}, resident at most "
        f"{format_bytes(result.peak_resident_bytes)} of {format_bytes(card.capacity_bytes)}. The "
        "time is that of the recording.",
        Axis(seconds, is_time=True),
        Axis(top / scale * 1.08, unit),
        (
            Curve(data, "seconds", "live", live, "after", hover=hover),
            Curve(data, "seconds", "resident", resident, "after", style.AREA_COLOUR),
            Level(card.capacity_bytes / scale, style.LINES["capacity_bytes"]),
        ),
        _HEIGHT,
    )


def _lasting(levels: NDArray[np.float64]) -> list[float]:
    return [*levels, *(levels[-1:] if len(levels) else [0.0])]


def _sizes(sizes: Sequence[int]) -> str:
    if len(sizes) == 1:
        return format_bytes(sizes[0])
    return f"{len(sizes)} sizes, up to {format_bytes(max(sizes))},"


def _against(curve: Sequence[tuple[int, float | None]], scale: float) -> dict[str, list[Any]]:
    return {
        "x": [size / scale for size, _ in curve],
        # Neither mark nor line for what runs out of memory, and no line over it.
        "y": [math.nan if slow is None else slow for _, slow in curve],
        "size": [format_bytes(size) for size, _ in curve],
    }
