# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The charts of one device over time: memory, rates, and rates by cause.

Each has a sentence that says the same in words, for readers who cannot see it. The strip of stages
and findings above them is that of `rmm_uvm.report.strip`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, causes, strip, style, words
from rmm_uvm.report.document import Axis, Chart, Curve, Hover, Level, Mark, Moments, Shade, Stack
from rmm_uvm.report.drawing import time_tooltip
from rmm_uvm.report.figures import of_device
from rmm_uvm.report.series import DeviceSeries, rates_of
from rmm_uvm.report.thinning import averaged, thinned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["charts"]

_DIRECTION_TITLES = {
    "host_to_device": "To the device, by cause",
    "device_to_host": "To the host, by cause",
}
_MEMORY_HEIGHT = 280
_RATES_HEIGHT = 220
_CAUSES_HEIGHT = 180
_FEWEST_RATES = 40  # of fewer a twentieth is one or two, and no exception
_LEVELS = ("footprint_bytes", "resident_bytes", "device_used_bytes")
_TOTALS = ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate")


def charts(
    recording: Recording,
    device: RecordedDevice,
    n_buckets: int,
    n_charted: int = 1,
    prefix: str = "",
) -> list[Chart]:
    """Return the charts of a device; those of which nothing is known are left out.

    Parameters
    ----------
    recording : Recording
        What to show.
    device : RecordedDevice
        One of its devices.
    n_buckets : int
        Into how many parts time is cut for thinning.
    n_charted : int
        Devices on the whole page.
    prefix : str
        What the names of the charts begin with.
    """
    series = DeviceSeries(recording.of(device.device_id))
    made = [
        *_memory(recording, device, series, n_buckets),
        *_rates(recording, device, series, n_buckets),
        *_by_cause(recording, device, n_buckets),
    ]
    if not made:
        return []
    findings = strip.shown_findings(recording, device.device_id)
    moments = Moments(tuple(one.time_seconds for one in findings), style.WARNING_COLOUR)
    above = strip.strip(recording, device.device_id, n_charted)
    return [
        dataclasses.replace(chart, name=f"{prefix}{chart.name}_{device.device_id}")
        for chart in (
            *([] if above is None else [above]),
            *(dataclasses.replace(chart, marks=(*chart.marks, moments)) for chart in made),
        )
    ]


def _memory(
    recording: Recording, device: RecordedDevice, series: DeviceSeries, n_buckets: int
) -> Iterator[Chart]:
    columns = _known({name: series.values(name) for name in style.LINES if name in _LEVELS})
    if not columns:
        return
    top = _highest([*columns.values(), np.array([float(device.capacity_bytes)])])
    scale, unit = words.memory_unit(top)
    kept = thinned(
        series.seconds, list(columns.values()), n_buckets, strip.marks_seconds(recording)
    )
    data = {"seconds": series.seconds[kept]}
    data |= {name: column[kept] / scale for name, column in columns.items()}
    budget = budgets.of_device(recording, device)
    qualified = "" if series.resident_exact else " (estimate)"
    if series.resident_exact and budget is not None:
        qualified = f", {budgets.KEPT}"
    lines = _lines(resident_bytes=f"resident{qualified}")
    limits = {"capacity_bytes": device.capacity_bytes}
    if budget is not None:
        limits["budget_bytes"] = budget.budget_bytes
    figures = of_device(recording, device)
    yield Chart(
        "memory",
        "Memory",
        f"Footprint {words.at_most(figures.peak_footprint_bytes)}, resident "
        f"{words.at_most(figures.peak_resident_bytes)}, managed capacity "
        f"{words.size(device.capacity_bytes or None)}"
        + ("." if budget is None else f", budget {words.size(budget.budget_bytes)}."),
        _time(recording),
        Axis(top / scale * 1.08, unit),
        (
            *_curves(recording, data, {name: lines[name] for name in columns}, unit),
            *(
                Level(limit_bytes / scale, lines[name])
                for name, limit_bytes in limits.items()
                if limit_bytes
            ),
        ),
        _MEMORY_HEIGHT,
    )


def _rates(
    recording: Recording, device: RecordedDevice, series: DeviceSeries, n_buckets: int
) -> Iterator[Chart]:
    columns = _known({name: series.rates(name) for name in style.LINES if name in _TOTALS})
    if not columns:
        return
    top = _highest(list(columns.values()))
    end = _end_of_steady(list(columns.values()), top)
    scale, unit = words.rate_unit(end)
    rates = averaged(series.seconds, columns, n_buckets)
    crowded = len(rates.seconds) < len(series.seconds)
    data = {"seconds": rates.seconds} | {name: rates.mean[name] / scale for name in columns}
    shades = []
    if crowded:
        peaks = {name: rates.highest[name] / scale for name in columns}
        data |= {f"{name}_peak": peak for name, peak in peaks.items()}
        stairs = {"seconds": _stairs(rates.seconds)}
        stairs |= {name: np.repeat(peak, 2) for name, peak in peaks.items()}
        shades = [
            Shade(stairs, "seconds", name, style.LINES[name].colour, 0.13)
            for name in columns
            if name != "evicted_bytes_estimate"
        ]
    whose = f" {budgets.DRIVERS_OWN}" * (device.device_id in recording.budgets)
    lines = _lines(evicted_bytes_estimate=f"evicted{whose} (estimate)")
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
    if end < top:
        above = max(int(np.sum(column > end)) for column in columns.values())
        caption += (
            f" The axis ends at {end / scale:.2f} {unit}, so that the rest can be read: in "
            f"{above} of {len(series.seconds)} samples the rate is above it."
        )
    shown = {name: lines[name] for name in columns}
    yield Chart(
        "rates",
        "Migration",
        caption,
        _time(recording),
        Axis(max(end / scale * 1.08, 1.0), unit),
        (*shades, *_curves(recording, data, shown, unit, is_rate=True)),
        _RATES_HEIGHT,
    )


def _by_cause(recording: Recording, device: RecordedDevice, n_buckets: int) -> Iterator[Chart]:
    found = causes.of_device(recording, device.device_id)
    if found is None:
        return
    for direction, totals in found.totals.items():
        rates = {
            cause: np.nan_to_num(rates_of(found.seconds, totals[cause]))
            for cause in style.CAUSES
            if cause in totals and totals[cause][-1] > 0
        }
        if not rates:
            continue
        top = _highest([np.sum(list(rates.values()), axis=0)])
        scale, unit = words.rate_unit(top)
        means = averaged(found.seconds, rates, n_buckets)
        # A rate is that of the interval before its sample, so an area has two corners for each.
        data = {"seconds": _stairs(means.seconds)}
        data |= {cause: np.repeat(mean / scale, 2) for cause, mean in means.mean.items()}
        fills = {cause: style.CAUSES[cause] for cause in rates}
        bytes_of = found.last()[direction]
        told = ", ".join(f"{fills[cause].label} {words.size(bytes_of[cause])}" for cause in rates)
        yield Chart(
            direction,
            _DIRECTION_TITLES[direction],
            f"In all: {told}.",
            _time(recording),
            Axis(top / scale * 1.08, unit),
            (Stack(data, "seconds", fills),),
            _CAUSES_HEIGHT,
        )


def _time(recording: Recording) -> Axis:
    return Axis(recording.duration_seconds, is_time=True)


def _lines(**labels: str) -> dict[str, style.Line]:
    """Return how everything is drawn, with other labels."""
    changed = {
        name: dataclasses.replace(style.LINES[name], label=text) for name, text in labels.items()
    }
    return style.LINES | changed


def _curves(
    recording: Recording,
    data: Mapping[str, NDArray[np.float64]],
    lines: Mapping[str, style.Line],
    unit: str,
    *,
    is_rate: bool = False,
) -> Iterator[Mark]:
    """Yield the lines of a chart, the solid ones first: dashed ones have gaps to see them through.

    One of them answers for all: they share their times.
    """
    rows = [("time", time_tooltip(recording.duration_seconds, "seconds"))]
    rows += [(line.label, f"@{name}{{0,0.00}} {unit}") for name, line in lines.items()]
    for name, line in lines.items():
        if f"{name}_peak" in data:
            rows.append((f"{line.label}, highest", f"@{name}_peak{{0,0.00}} {unit}"))
    last = list(lines)[-1]
    for name, line in lines.items():
        hover: Hover = tuple(rows) if name == last else ()
        area = style.AREA_COLOUR if name == "resident_bytes" else ""
        yield Curve(data, "seconds", name, line, "before" if is_rate else "", area, hover)


def _known(columns: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {name: c for name, c in columns.items() if len(c) and not np.all(np.isnan(c))}


def _stairs(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return begin and end of each interval."""
    begins = np.concatenate(([0.0], seconds[:-1]))
    return np.column_stack([begins, seconds]).ravel()


def _end_of_steady(columns: Sequence[NDArray[np.float64]], top: float) -> float:
    """Return where an axis of rates ends: at the highest, but if that is far above nearly all."""
    known = np.concatenate([column[np.isfinite(column)] for column in columns])
    moving = known[known > 0]
    if len(moving) < _FEWEST_RATES:
        return top
    steady = float(np.percentile(moving, 95)) * 1.25
    return steady if top > 3 * steady else top


def _highest(columns: Sequence[NDArray[np.float64]]) -> float:
    """Return the greatest known value, 0 if there is none."""
    known = [float(np.nanmax(c)) for c in columns if len(c) and not np.all(np.isnan(c))]
    return max((value for value in known if math.isfinite(value)), default=0.0)
