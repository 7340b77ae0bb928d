# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Axes with units that suit the values, and tools that are the same in every chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CLOCK_SECONDS", "memory_unit", "panel", "rate_unit", "shared_range", "time_tooltip"]

CLOCK_SECONDS = 300
"""Runs longer than this show h:mm:ss instead of seconds."""

# As wide as the widest labels: the time axes of all charts lie exactly below one another.
_LEFT_PIXELS = 68
_RIGHT_PIXELS = 14
# Of the time: half of a mark, and half of one with its number.
ROOM_LEFT, ROOM_RIGHT = 0.02, 0.04


def memory_unit(most_bytes: float) -> tuple[float, str]:
    """Return a binary unit in which a size is a number that one can read.

    Examples
    --------
    >>> memory_unit(3e9), memory_unit(5e6)
    ((1073741824, 'GiB'), (1048576, 'MiB'))
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if most_bytes >= 1024**power:
            return 1024**power, unit
    return 1024, "KiB"


def rate_unit(most_bytes: float) -> tuple[float, str]:
    """Return a decimal unit for bytes a second, as links and buses are specified in.

    Examples
    --------
    >>> rate_unit(2.5e10), rate_unit(0)
    ((1000000000, 'GB/s'), (1000, 'kB/s'))
    """
    for power, unit in ((3, "GB/s"), (2, "MB/s")):
        if most_bytes >= 1000**power:
            return 1000**power, unit
    return 1000, "kB/s"


def highest(columns: Sequence[NDArray[np.float64]]) -> float:
    """Return the greatest known value, 0 if there is none."""
    import numpy as np

    known = [float(np.nanmax(c)) for c in columns if len(c) and not np.all(np.isnan(c))]
    return max((value for value in known if math.isfinite(value)), default=0.0)


def shared_range(duration_seconds: float) -> Any:
    """Return the time range that all charts of a page share.

    With room beside it: a mark at an edge, and the number to its right, would be cut off.
    """
    from bokeh.models import Range1d

    seconds = max(duration_seconds, 1e-3)
    start, end = -ROOM_LEFT * seconds, (1 + ROOM_RIGHT) * seconds
    return Range1d(start, end, bounds=(start, end))


def time_tooltip(duration_seconds: float, field: str) -> str:
    """Return a hover text's placeholder for a time."""
    return f"@{field}{{00:00:00}}" if duration_seconds > CLOCK_SECONDS else f"@{field}{{0.00}} s"


def panel(x_range: Any, height: int, y_label: str, *, bare: bool = False) -> Any:
    """Return an empty chart over the shared time range.

    Parameters
    ----------
    x_range : bokeh.models.Range1d
        From `shared_range`.
    height : int
        Pixels; the width is that of the page.
    y_label : str
        Quantity and unit.
    bare : bool
        Without axes: the strip of stages.
    """
    from bokeh.models import (
        AdaptiveTicker,
        NumeralTickFormatter,
        PanTool,
        ResetTool,
        SaveTool,
        WheelZoomTool,
    )
    from bokeh.plotting import figure

    # With a key, so that turning the wheel still scrolls the page.
    modifiers = {"modifiers": {"ctrl": True}} if "modifiers" in WheelZoomTool.properties() else {}
    wheel = WheelZoomTool(dimensions="width", **modifiers)
    pan = PanTool(dimensions="width")
    chart = figure(
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range,
        tools=[pan, wheel, ResetTool(), SaveTool(filename="rmm_uvm_report")],
        active_drag=pan,
        active_scroll=wheel,
        toolbar_location=None if bare else "above",
        output_backend="canvas",
        min_border_left=_LEFT_PIXELS,
        min_border_right=_RIGHT_PIXELS,
        background_fill_color="#FFFFFF",
        outline_line_color="#8A8A8A" if not bare else None,
    )
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.grid.grid_line_color = "#E3E3E3"
    if bare:
        chart.axis.visible = False
        chart.grid.visible = False
        return chart
    chart.axis.axis_label_text_font_style = "normal"
    chart.axis.axis_label_text_color = chart.axis.major_label_text_color = "#222222"
    chart.axis.major_label_text_font_size = "12px"
    chart.axis.axis_label_text_font_size = "12px"
    chart.axis.minor_tick_line_color = None
    chart.yaxis.axis_label = y_label
    chart.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    chart.yaxis.ticker.desired_num_ticks = 5
    chart.y_range.start = 0
    chart.xaxis.axis_label = "seconds since the start"
    if x_range.end > CLOCK_SECONDS * (1 + ROOM_RIGHT):
        chart.xaxis.axis_label = "time since the start, h:mm:ss"
        chart.xaxis.formatter = NumeralTickFormatter(format="00:00:00")
        # Steps that clocks have; below a second the labels would repeat themselves.
        chart.xaxis.ticker = AdaptiveTicker(
            base=60, mantissas=[1, 2, 3, 5, 10, 15, 30], min_interval=1, desired_num_ticks=5
        )
    return chart
