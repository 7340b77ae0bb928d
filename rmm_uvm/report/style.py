# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How each thing is drawn: colours that colour-blind readers tell apart, never colour alone.

The colours are those of Okabe and Ito. Each line has a dash pattern of its own as well, each kind
of finding a marker, each cause a hatch; so a report can be read in black and white.
"""

from __future__ import annotations

import dataclasses

__all__ = [
    "CAPACITY",
    "CAUSES",
    "ELSEWHERE",
    "LINES",
    "MARKERS",
    "RISING_STROKES",
    "STAGE_FILLS",
    "Fill",
    "Line",
]

_BLACK = "#000000"
_ORANGE = "#E69F00"
_SKY = "#56B4E9"
_GREEN = "#009E73"
_BLUE = "#0072B2"
_VERMILION = "#D55E00"
_PURPLE = "#CC79A7"
_GREY = "#999999"

WARNING_COLOUR = _VERMILION
"""The colour of the marks of findings."""

AREA_COLOUR = _SKY
"""The colour of the area under the resident bytes."""


@dataclasses.dataclass(frozen=True)
class Line:
    """How a line is drawn.

    Parameters
    ----------
    label : str
        In the legend and in hover texts.
    colour : str
        In CSS's notation.
    dash : tuple of int
        Lengths of strokes and gaps, pixels; empty for a solid line.
    width : float
        Pixels.
    """

    label: str
    colour: str
    dash: tuple[int, ...] = ()
    width: float = 1.8


@dataclasses.dataclass(frozen=True)
class Fill:
    """How an area is filled: a colour, and strokes, so that nothing hangs on the colour alone.

    `hatch` is Bokeh's name of the strokes, empty for none, and `strokes` the same in a swatch of 28
    by 12 pixels, as an SVG path. `alpha` is of the colour, 0 to 1.
    """

    label: str
    colour: str
    hatch: str = ""
    strokes: str = ""
    alpha: float = 1.0
    hatch_colour: str = "#000000"


RISING_STROKES = "M2 12L10 0M10 12L18 0M18 12L26 0"
"""A swatch of Bokeh's "right_diagonal_line"."""

LINES: dict[str, Line] = {
    "footprint_bytes": Line("footprint", _BLACK, (), 2.0),
    "resident_bytes": Line("resident", _BLUE, (6, 2)),
    "capacity_bytes": Line("managed capacity", _VERMILION, (12, 5), 2.0),
    "budget_bytes": Line("budget", _PURPLE, (12, 3, 2, 3), 2.0),
    "device_used_bytes": Line("device memory in use, all processes", _GREEN, (2, 3)),
    "host_to_device_bytes": Line("to the device", _BLUE),
    "device_to_host_bytes": Line("to the host", _VERMILION, (8, 3)),
    "evicted_bytes_estimate": Line("evicted (estimate)", _BLACK, (2, 3)),
}

ELSEWHERE = Fill("more than fits", _ORANGE, "right_diagonal_line", RISING_STROKES, 0.45, _ORANGE)
"""The fill of what is allocated and not on the device, in bars."""

CAPACITY = Fill("managed capacity", "#111111")
"""The fill of the end of what fits, in bars."""

CAUSES: dict[str, Fill] = {
    "user": Fill("asked for (prefetch)", _SKY, "blank"),
    "coherence": Fill("page faults", _ORANGE, "right_diagonal_line", RISING_STROKES),
    "prefetch": Fill("kernel driver's speculation", _GREEN, "dot", "M5 6h2M13 6h2M21 6h2"),
    "eviction": Fill(
        "eviction", _VERMILION, "left_diagonal_line", "M2 0L10 12M10 0L18 12M18 0L26 12"
    ),
    "access_counters": Fill("access counters", _PURPLE, "horizontal_line", "M0 4h28M0 9h28"),
    "unknown": Fill("unknown", _GREY, "vertical_line", "M6 0v12M14 0v12M22 0v12"),
}
"""How causes are drawn, in the order in which they are stacked."""

MARKERS = {
    "footprint": "square",
    "eviction": "inverted_triangle",
    "amplification": "diamond",
    "host_memory": "hex",
    "device_taken": "triangle",
    "prefetch": "square_pin",
    "budget": "hourglass",
    "prediction": "plus",
    "waiting": "star",
    "monitor": "circle",
}

STAGE_FILLS = ("#DCE9F2", "#F5E9CC", "#D9EDE6", "#F1E0EA")
"""Light, with text in black on them."""
