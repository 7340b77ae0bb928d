# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Charts of a document as Bokeh's: axes, tools and legends are the same in all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from rmm_uvm.report.document import (
    Axis,
    Bands,
    Bars,
    Chart,
    Curve,
    Dots,
    Hover,
    Level,
    Mark,
    Moments,
    Shade,
    Stack,
)
from rmm_uvm.report.style import Fill, Line

__all__ = ["ROOM_RIGHT", "Key", "draw", "legend", "range_of", "time_tooltip"]

ROOM_LEFT, ROOM_RIGHT = 0.02, 0.04
"""Beside the time, parts of it: half of a mark, and half of one with its number."""

_CLOCK_SECONDS = 300  # longer runs show h:mm:ss instead of seconds

# As wide as the widest labels: the time axes of all charts lie exactly below one another.
_LEFT_PIXELS = 68
_RIGHT_PIXELS = 14
_HOVER_MODES = {Curve: "vline", Bars: "hline"}


@dataclasses.dataclass(frozen=True)
class Key:
    """One entry of a legend: a line, with `hatch` a filled area, with `marker` a square.

    Parameters
    ----------
    label : str
        What it is.
    colour : str
        Of the line or the area.
    dash : str
        As SVG's ``stroke-dasharray``.
    area : str
        Colour below the line; empty for none.
    hatch : str or None
        Strokes in the swatch; None for a line.
    marker : bool
        Points that no line joins.
    """

    label: str
    colour: str
    dash: str = ""
    area: str = ""
    hatch: str | None = None
    marker: bool = False


def legend(chart: Chart) -> list[Key]:
    """Return the legend of a chart: an entry for each mark that has a label."""
    found: list[Key] = []
    for mark in chart.marks:
        match mark:
            case Curve(line=line, area=area):
                found.append(_line_key(line, area))
            case Level(line=line):
                found.append(_line_key(line))
            case Stack(fills=fills):
                found += [_fill_key(fill) for fill in fills.values()]
            case Bars(fill=fill, is_tick=is_tick):
                found.append(Key(fill.label, fill.colour) if is_tick else _fill_key(fill))
            case Dots(label=label, colour=colour) if label:
                found.append(Key(label, colour, marker=True))
    return [key for key in found if key.label]


def _line_key(line: Line, area: str = "") -> Key:
    return Key(line.label, line.colour, " ".join(map(str, line.dash)), area)


def _fill_key(fill: Fill) -> Key:
    return Key(fill.label, fill.colour, hatch=fill.strokes)


def time_tooltip(duration_seconds: float, field: str) -> str:
    """Return a hover text's placeholder for a time."""
    return f"@{field}{{00:00:00}}" if duration_seconds > _CLOCK_SECONDS else f"@{field}{{0.00}} s"


def range_of(axis: Axis) -> Any:
    """Return the range of a horizontal axis; charts that are given the same one move together.

    Times have room beside them: a mark at an edge, and the number to its right, would be cut off.
    """
    from bokeh.models import Range1d

    start, end = 0.0, axis.end
    if axis.is_time:
        seconds = max(axis.end, 1e-3)
        start, end = -ROOM_LEFT * seconds, (1 + ROOM_RIGHT) * seconds
    return Range1d(start, end, bounds=(start, end))


def draw(chart: Chart, x_range: Any = None) -> Any:
    """Return a chart as Bokeh's figure.

    Parameters
    ----------
    chart : Chart
        What to draw.
    x_range : bokeh.models.Range1d or None
        From `range_of` its axis, to be shared with other charts.
    """
    from bokeh.models import HoverTool

    drawing = _Drawing(_panel(chart, x_range or range_of(chart.x)), chart)
    # Areas first: lines are seen through them, but not they through lines.
    for mark in chart.marks:
        drawing.area(mark)
    hovers: dict[tuple[str, Hover], list[Any]] = {}
    for mark in chart.marks:
        made = list(drawing.mark(mark))
        if hover := getattr(mark, "hover", ()):
            key = (_HOVER_MODES.get(type(mark), "mouse"), hover)
            hovers.setdefault(key, []).extend(made)
    for (mode, hover), renderers in hovers.items():
        drawing.panel.add_tools(HoverTool(tooltips=list(hover), mode=mode, renderers=renderers))
    return drawing.panel


class _Drawing:
    """Puts marks on a figure; those with the same data share a source."""

    def __init__(self, panel: Any, chart: Chart) -> None:
        self.panel = panel
        self._rows = chart.y.rows
        self._sources: dict[int, Any] = {}

    def area(self, mark: Mark) -> None:
        """Draw what lies behind everything else."""
        match mark:
            case Curve(x=x, y=y, steps=steps, area=area) if area:
                source = self._source(mark)
                how = {"source": source, "color": area, "alpha": 0.3}
                if steps:
                    self.panel.varea_step(x, 0, y, step_mode=steps, **how)
                else:
                    self.panel.varea(x, 0, y, **how)
            case Shade(x=x, y=y, colour=colour, alpha=alpha):
                self.panel.varea(x, 0, y, source=self._source(mark), color=colour, alpha=alpha)
            case Stack(x=x, fills=fills):
                self.panel.varea_stack(
                    list(fills), x=x, source=self._source(mark),
                    color=[fill.colour for fill in fills.values()],
                    hatch_pattern=[fill.hatch or "blank" for fill in fills.values()],
                    hatch_color="#000000", hatch_alpha=0.55, hatch_weight=0.6, hatch_scale=9.0,
                )  # fmt: skip

    def mark(self, mark: Mark) -> Iterator[Any]:
        """Draw everything else, and yield what a mouse can point at."""
        match mark:
            case Curve(x=x, y=y, line=line, steps=steps):
                how = {"source": self._source(mark), **_stroke(line)}
                draws = self.panel.step if steps else self.panel.line
                yield draws(x, y, **how, **({"mode": steps} if steps else {}))
            case Level(value=value, line=line):
                self._level(value, line)
            case Moments(seconds=seconds, colour=colour) if seconds:
                self._moments(seconds, colour)
            case Dots():
                yield self._dots(mark)
            case Bars():
                yield self._bars(mark)
            case Bands():
                yield from self._bands(mark)

    def _source(self, mark: Any) -> Any:
        from bokeh.models import ColumnDataSource

        known = id(mark.data)
        if known not in self._sources:
            rows = {"row": list(self._rows)} if self._rows else {}
            self._sources[known] = ColumnDataSource({**mark.data, **rows})
        return self._sources[known]

    def _level(self, value: float, line: Line) -> None:
        from bokeh.models import Span

        self.panel.add_layout(Span(location=value, dimension="width", **_stroke(line)))

    def _moments(self, seconds: tuple[float, ...], colour: str) -> None:
        from bokeh.core.properties import value

        # Bokeh 3.8 takes a list alone for a column, with a pattern for each line.
        self.panel.vspan(
            x=sorted(set(seconds)), line_color=colour, line_dash=value([1, 3]), line_width=1.2,
            level="underlay",
        )  # fmt: skip

    def _dots(self, mark: Dots) -> Any:
        source = self._source(mark)
        edge = {"line_color": mark.colour, "line_width": 2} if mark.hollow else {
            "line_color": mark.edge or mark.colour, "line_width": 0.8 if mark.edge else 1,
        }  # fmt: skip
        made = self.panel.scatter(
            mark.x, mark.y, source=source, marker=mark.marker, size=mark.size,
            fill_color=None if mark.hollow else mark.colour, **edge,
        )  # fmt: skip
        if mark.text:
            self.panel.text(
                mark.x, mark.y, mark.text, source=source, x_offset=8, text_baseline="middle",
                text_font_size="12px", text_font_style="bold", text_color="#111111",
            )  # fmt: skip
        return made

    def _bars(self, mark: Bars) -> Any:
        from bokeh.transform import dodge

        fill, source = mark.fill, self._source(mark)
        if mark.is_tick:
            return self.panel.scatter(
                mark.right, "row", source=source, marker="dash", angle=1.5708, size=24,
                line_color=fill.colour, line_width=3,
            )  # fmt: skip
        row = dodge("row", mark.offset, range=self.panel.y_range) if mark.offset else "row"
        return self.panel.hbar(
            y=row, left=mark.left or 0, right=mark.right, height=mark.height, source=source,
            line_width=0, fill_color=fill.colour, fill_alpha=fill.alpha,
            hatch_pattern=fill.hatch or None, hatch_color=fill.hatch_colour, hatch_weight=1,
        )  # fmt: skip

    def _bands(self, mark: Bands) -> Iterator[Any]:
        """Draw bands: those with names one by one, since each covers the name before it.

        A browser is slow with hundreds of glyphs: all others are one.
        """
        from bokeh.models import ColumnDataSource

        number = len(mark.data["left"])
        groups = [slice(n, n + 1) for n in range(number)] if mark.is_named else [slice(None)]
        for group in groups:
            source = ColumnDataSource({name: list(row)[group] for name, row in mark.data.items()})
            yield self.panel.quad(
                left="left", right="right", top="top", bottom="bottom", fill_color="fill",
                line_color="#6B6B6B", line_width=0.8, source=source,
            )  # fmt: skip
            if mark.is_named:
                self.panel.text(
                    "left", "middle", "name", source=source, x_offset=5, text_baseline="middle",
                    text_font_size="12px", text_color="#111111",
                )  # fmt: skip


def _stroke(line: Line) -> dict[str, Any]:
    return {"line_color": line.colour, "line_dash": list(line.dash), "line_width": line.width}


def _panel(chart: Chart, x_range: Any) -> Any:
    """Return an empty chart with its axes."""
    from bokeh.models import FactorRange, NumeralTickFormatter
    from bokeh.plotting import figure

    rows = chart.y.rows
    how: dict[str, Any] = _tools(is_bare=chart.is_bare)
    if rows:
        how = {"tools": "", "toolbar_location": None, "x_range": (0, chart.x.end)}
        how["y_range"] = FactorRange(*reversed(rows), range_padding=0.1)
    else:
        how |= {"x_range": x_range, "min_border_left": _LEFT_PIXELS}
        how["min_border_right"] = _RIGHT_PIXELS
    panel = figure(
        height=chart.height, sizing_mode="stretch_width", output_backend="canvas",
        background_fill_color="#FFFFFF", outline_line_color=None if chart.is_bare else "#8A8A8A",
        **how,
    )  # fmt: skip
    panel.toolbar.logo = None
    panel.toolbar.autohide = True
    panel.grid.grid_line_color = "#E3E3E3"
    if chart.is_bare:
        panel.axis.visible = panel.grid.visible = False
        panel.y_range.start, panel.y_range.end = chart.y.end, 0
        return panel
    panel.axis.axis_label_text_font_style = "normal"
    panel.axis.axis_label_text_color = panel.axis.major_label_text_color = "#222222"
    panel.axis.major_label_text_font_size = panel.axis.axis_label_text_font_size = "12px"
    panel.axis.minor_tick_line_color = None
    panel.xaxis.axis_label = chart.x.label
    numbers = {"formatter": NumeralTickFormatter(format="0,0.[00]")}
    if rows:
        panel.ygrid.visible = False
    else:
        panel.yaxis.update(axis_label=chart.y.label, **numbers)
        panel.yaxis.ticker.desired_num_ticks = 5
        panel.y_range.start, panel.y_range.end = 0, chart.y.end
    if chart.x.is_time:
        _time_axis(panel.xaxis, chart.x.end)
    else:
        panel.xaxis.update(**numbers)
        panel.xaxis.ticker.desired_num_ticks = 5 if rows else 6
    return panel


def _tools(*, is_bare: bool) -> dict[str, Any]:
    from bokeh.models import PanTool, ResetTool, SaveTool, WheelZoomTool

    # With a key, so that turning the wheel still scrolls the page.
    modifiers = {"modifiers": {"ctrl": True}} if "modifiers" in WheelZoomTool.properties() else {}
    wheel = WheelZoomTool(dimensions="width", **modifiers)
    pan = PanTool(dimensions="width")
    return {
        "tools": [pan, wheel, ResetTool(), SaveTool(filename="rmm_uvm_report")],
        "active_drag": pan,
        "active_scroll": wheel,
        "toolbar_location": None if is_bare else "above",
    }


def _time_axis(axis: Any, seconds: float) -> None:
    from bokeh.models import AdaptiveTicker, NumeralTickFormatter

    axis.axis_label = "seconds since the start"
    if seconds <= _CLOCK_SECONDS:
        return
    axis.axis_label = "time since the start, h:mm:ss"
    axis.formatter = NumeralTickFormatter(format="00:00:00")
    # Steps that clocks have; below a second the labels would repeat themselves.
    axis.ticker = AdaptiveTicker(
        base=60, mantissas=[1, 2, 3, 5, 10, 15, 30], min_interval=1, desired_num_ticks=5
    )
