# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The charts of one device over time: memory, rates, and rates by cause.

Each comes with its legend as plain values and a sentence that says the same in words, for readers
who cannot see it. Does not cover the strip of stages and findings; see `rmm_uvm.report.strip`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import axes, budgets, causes, style, words
from rmm_uvm.report.figures import of_device
from rmm_uvm.report.series import DeviceSeries, rates_of
from rmm_uvm.report.thinning import averaged, thinned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Chart", "Key", "charts"]

_DIRECTION_TITLES = {
    "host_to_device": "To the device, by cause",
    "device_to_host": "To the host, by cause",
}
_MEMORY_HEIGHT = 280
_RATES_HEIGHT = 220
_CAUSES_HEIGHT = 180


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


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart with what stands around it.

    Parameters
    ----------
    name : str
        Unique on the page.
    title : str
        Heading.
    model : bokeh model
        The chart itself.
    legend : tuple of Key
        May be empty.
    caption : str
        What it shows, in words.
    height : int
        Pixels, without heading and legend.
    """

    name: str
    title: str
    model: Any
    legend: tuple[Key, ...]
    caption: str
    height: int


def charts(
    recording: Recording,
    device: RecordedDevice,
    x_range: Any,
    n_buckets: int,
    marks_seconds: Sequence[float],
) -> list[Chart]:
    """Return the charts of a device; those of which nothing is known are left out.

    Parameters
    ----------
    recording : Recording
        What to show.
    device : RecordedDevice
        One of its devices.
    x_range : bokeh.models.Range1d
        From `rmm_uvm.report.axes.shared_range`.
    n_buckets : int
        Into how many parts time is cut for thinning.
    marks_seconds : sequence of float
        Times of findings and edges of stages: samples beside them are kept.
    """
    series = DeviceSeries(recording.of(device.device_id))
    made = [
        _memory(recording, device, series, x_range, n_buckets, marks_seconds),
        _rates(recording, device, series, x_range, n_buckets),
        *_by_cause(recording, device, x_range, n_buckets),
    ]
    return [chart for chart in made if chart is not None]


def _memory(
    recording: Recording,
    device: RecordedDevice,
    series: DeviceSeries,
    x_range: Any,
    n_buckets: int,
    marks_seconds: Sequence[float],
) -> Chart | None:
    columns = _known({n: series.values(n) for n in style.LINES if n in _LEVELS})
    if not columns:
        return None
    top = axes.highest([*columns.values(), np.array([float(device.capacity_bytes)])])
    scale, unit = axes.memory_unit(top)
    chart = axes.panel(x_range, _MEMORY_HEIGHT, unit)
    chart.y_range.end = top / scale * 1.08
    source = _source(series.seconds, columns, scale, n_buckets, marks_seconds)
    lines = dict(style.LINES)
    budget = budgets.of_device(recording, device)
    qualified = "" if series.resident_exact else " (estimate)"
    if series.resident_exact and budget is not None:
        qualified = f", {budgets.KEPT}"
    if qualified:
        lines["resident_bytes"] = dataclasses.replace(
            lines["resident_bytes"], label=f"resident{qualified}"
        )
    if "resident_bytes" in columns:
        chart.varea(
            "seconds", 0, "resident_bytes", source=source, color=style.AREA_COLOUR, alpha=0.3
        )
    _draw(chart, source, [lines[name] for name in columns], list(columns))
    _hover(chart, recording, [(lines[name].label, name) for name in columns], unit)
    legend = [_key(lines[name], area="resident" in name) for name in columns]
    limits = {"capacity_bytes": device.capacity_bytes}
    if budget is not None:
        limits["budget_bytes"] = budget.budget_bytes
    for name, limit_bytes in limits.items():
        if limit_bytes:
            chart.add_layout(_limit(lines[name], limit_bytes / scale))
            legend.append(_key(lines[name]))
    figures = of_device(recording, device)
    caption = (
        f"Footprint {words.at_most(figures.peak_footprint_bytes)}, resident "
        f"{words.at_most(figures.peak_resident_bytes)}, managed capacity "
        f"{words.size(device.capacity_bytes or None)}"
        + ("." if budget is None else f", budget {words.size(budget.budget_bytes)}.")
    )
    name = f"memory_{device.device_id}"
    return Chart(name, "Memory", chart, tuple(legend), caption, _MEMORY_HEIGHT)


def _limit(line: style.Line, height: float) -> Any:
    """Return a level that does not change."""
    from bokeh.models import Span

    return Span(
        location=height,
        dimension="width",
        line_color=line.colour,
        line_dash=list(line.dash),
        line_width=line.width,
    )


def _rates(
    recording: Recording,
    device: RecordedDevice,
    series: DeviceSeries,
    x_range: Any,
    n_buckets: int,
) -> Chart | None:
    from bokeh.models import ColumnDataSource

    columns = _known({n: series.rates(n) for n in style.LINES if n in _TOTALS})
    if not columns:
        return None
    top = axes.highest(list(columns.values()))
    scale, unit = axes.rate_unit(top)
    chart = axes.panel(x_range, _RATES_HEIGHT, unit)
    chart.y_range.end = max(top / scale * 1.08, 1.0)
    rates = averaged(series.seconds, columns, n_buckets)
    crowded = len(rates.seconds) < len(series.seconds)
    data = {name: rates.mean[name] / scale for name in columns}
    if crowded:
        data |= {f"{name}_peak": rates.highest[name] / scale for name in columns}
    source = ColumnDataSource({"seconds": rates.seconds} | data)
    if crowded:
        shown = [name for name in columns if name != "evicted_bytes_estimate"]
        _peaks(chart, rates.seconds, {n: rates.highest[n] / scale for n in shown})
    lines, whose = dict(style.LINES), ""
    if device.device_id in recording.budgets:
        whose = f" {budgets.DRIVERS_OWN}"
        lines["evicted_bytes_estimate"] = dataclasses.replace(
            lines["evicted_bytes_estimate"], label=f"evicted{whose} (estimate)"
        )
    _draw(chart, source, [lines[name] for name in columns], list(columns), steps=True)
    rows = [(lines[name].label, name) for name in columns]
    if crowded:
        rows += [(f"{lines[name].label}, highest", f"{name}_peak") for name in columns]
    _hover(chart, recording, rows, unit)
    figures = of_device(recording, device)
    caption = (
        f"{words.size(figures.host_to_device_bytes)} moved to the device, "
        f"{words.size(figures.device_to_host_bytes)} to the host, of which about "
        f"{words.size(figures.evicted_bytes_estimate)} were evicted{whose}. The highest rate is "
        f"{top / scale:.2f} {unit}."
    )
    if recording.simulated:
        caption += " Rates are modelled bytes over time of the host: a GPU's are others."
    if crowded:
        width = words.clock_text(recording.duration_seconds / n_buckets)
        caption += f" Lines are averages over {width}; pale areas reach up to the highest sample."
    legend = tuple(_key(lines[name]) for name in columns)
    return Chart(f"rates_{device.device_id}", "Migration", chart, legend, caption, _RATES_HEIGHT)


def _by_cause(
    recording: Recording, device: RecordedDevice, x_range: Any, n_buckets: int
) -> list[Chart]:
    from bokeh.models import ColumnDataSource

    found = causes.of_device(recording, device.device_id)
    made: list[Chart] = []
    if found is None:
        return made
    for direction, totals in found.totals.items():
        rates = {
            cause: np.nan_to_num(rates_of(found.seconds, totals[cause]))
            for cause in style.CAUSE_NAMES
            if cause in totals and totals[cause][-1] > 0
        }
        if not rates:
            continue
        top = axes.highest([np.sum(list(rates.values()), axis=0)])
        scale, unit = axes.rate_unit(top)
        means = averaged(found.seconds, rates, n_buckets)
        # A rate is that of the interval before its sample, so an area has two corners for each.
        data = {"seconds": _stairs(means.seconds)}
        data |= {cause: np.repeat(mean / scale, 2) for cause, mean in means.mean.items()}
        chart = axes.panel(x_range, _CAUSES_HEIGHT, unit)
        chart.y_range.end = top / scale * 1.08
        fills = [style.CAUSE_FILLS[cause] for cause in rates]
        chart.varea_stack(
            list(rates),
            x="seconds",
            source=ColumnDataSource(data),
            color=[colour for colour, _, _ in fills],
            hatch_pattern=[hatch for _, hatch, _ in fills],
            hatch_color="#000000",
            hatch_alpha=0.55,
            hatch_weight=0.6,
            hatch_scale=9.0,
        )
        legend = tuple(
            Key(style.CAUSE_NAMES[cause], colour, hatch=strokes)
            for cause, (colour, _, strokes) in zip(rates, fills, strict=True)
        )
        bytes_of = found.last()[direction]
        caption = ", ".join(f"{style.CAUSE_NAMES[c]} {words.size(bytes_of[c])}" for c in rates)
        made.append(
            Chart(
                f"{direction}_{device.device_id}",
                _DIRECTION_TITLES[direction],
                chart,
                legend,
                f"In all: {caption}.",
                _CAUSES_HEIGHT,
            )
        )
    return made


_LEVELS = ("footprint_bytes", "resident_bytes", "device_used_bytes")
_TOTALS = ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate")


def _known(columns: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {name: c for name, c in columns.items() if len(c) and not np.all(np.isnan(c))}


def _stairs(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return begin and end of each interval."""
    begins = np.concatenate(([0.0], seconds[:-1]))
    return np.column_stack([begins, seconds]).ravel()


def _source(
    seconds: NDArray[np.float64],
    columns: dict[str, NDArray[np.float64]],
    scale: float,
    n_buckets: int,
    marks_seconds: Sequence[float],
) -> Any:
    from bokeh.models import ColumnDataSource

    kept = thinned(seconds, list(columns.values()), n_buckets, marks_seconds)
    data = {name: column[kept] / scale for name, column in columns.items()}
    return ColumnDataSource({"seconds": seconds[kept]} | data)


def _draw(
    chart: Any,
    source: Any,
    lines: Sequence[style.Line],
    names: Sequence[str],
    *,
    steps: bool = False,
) -> None:
    # Solid lines come first in the table: through the gaps of a dashed one they can be seen.
    for line, name in zip(lines, names, strict=True):
        how = {"line_color": line.colour, "line_dash": list(line.dash), "line_width": line.width}
        if steps:
            chart.step("seconds", name, source=source, mode="before", **how)
        else:
            chart.line("seconds", name, source=source, **how)


def _peaks(
    chart: Any, seconds: NDArray[np.float64], highest: dict[str, NDArray[np.float64]]
) -> None:
    at = _stairs(seconds)
    for name, peaks in highest.items():
        colour = style.LINES[name].colour
        chart.varea(at, 0, np.repeat(peaks, 2), color=colour, alpha=0.13)


def _hover(chart: Any, recording: Recording, rows: Sequence[tuple[str, str]], unit: str) -> None:
    from bokeh.models import HoverTool

    time = axes.time_tooltip(recording.duration_seconds, "seconds")
    tooltips = [("time", time), *((label, f"@{name}{{0,0.00}} {unit}") for label, name in rows)]
    # One line answers for all: they share their times.
    first = chart.renderers[-1]
    chart.add_tools(HoverTool(tooltips=tooltips, mode="vline", renderers=[first]))


def _key(line: style.Line, *, area: bool = False) -> Key:
    dash = " ".join(map(str, line.dash))
    return Key(line.label, line.colour, dash, style.AREA_COLOUR if area else "")
