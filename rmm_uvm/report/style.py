# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How each thing is drawn: colours that colour-blind readers tell apart, never colour alone.

The colours are those of Okabe and Ito. Each line has a dash pattern of its own as well, each kind
of finding a marker, each cause a hatch; so a report can be read in black and white.
"""

from __future__ import annotations

import dataclasses

__all__ = ["CAUSE_FILLS", "CAUSE_NAMES", "LINES", "MARKERS", "STAGE_FILLS", "Line"]

_BLACK = "#000000"
_ORANGE = "#E69F00"
_SKY = "#56B4E9"
_GREEN = "#009E73"
_BLUE = "#0072B2"
_VERMILION = "#D55E00"
_PURPLE = "#CC79A7"
_GREY = "#999999"

WARNING_COLOUR = _VERMILION
"""Of the marks of findings."""

AREA_COLOUR = _SKY
"""Of the area under the resident bytes."""


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

CAUSE_NAMES = {
    "user": "asked for (prefetch)",
    "coherence": "page faults",
    "prefetch": "kernel driver's speculation",
    "eviction": "eviction",
    "access_counters": "access counters",
    "unknown": "unknown",
}
"""In the order in which they are stacked."""

# Colour, Bokeh's hatch, and the same hatch as strokes of a swatch of 28 by 12 pixels.
CAUSE_FILLS: dict[str, tuple[str, str, str]] = {
    "user": (_SKY, "blank", ""),
    "coherence": (_ORANGE, "right_diagonal_line", "M2 12L10 0M10 12L18 0M18 12L26 0"),
    "prefetch": (_GREEN, "dot", "M5 6h2M13 6h2M21 6h2"),
    "eviction": (_VERMILION, "left_diagonal_line", "M2 0L10 12M10 0L18 12M18 0L26 12"),
    "access_counters": (_PURPLE, "horizontal_line", "M0 4h28M0 9h28"),
    "unknown": (_GREY, "vertical_line", "M6 0v12M14 0v12M22 0v12"),
}

MARKERS = {
    "footprint": "square",
    "eviction": "inverted_triangle",
    "amplification": "diamond",
    "host_memory": "hex",
    "device_taken": "triangle",
    "prefetch": "square_pin",
    "budget": "hourglass",
    "prediction": "plus",
    "monitor": "circle",
}

STAGE_FILLS = ("#DCE9F2", "#F5E9CC", "#D9EDE6", "#F1E0EA")
"""Light, with text in black on them."""
