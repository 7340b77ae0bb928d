# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Findings in words: the figure, the threshold, and the one remedy that fits the situation.

Does not cover when there is a finding, see `rmm_uvm.watch.judging.policy`. Every function is pure.
"""

from __future__ import annotations

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import Known
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.residency.troubles import Lately, prediction_off, too_large, waiting
from rmm_uvm.support.units import format_bytes
from rmm_uvm.watch.judging.intervals import SampleRow

__all__ = [
    "amplification_found",
    "counters_lost",
    "device_taken_found",
    "eviction_found",
    "footprint_found",
    "host_memory_found",
    "own_remedies",
    "prediction_found",
    "prefetch_found",
    "source_unavailable",
    "too_large_found",
    "waiting_found",
]

_LESS_DATA = "work on less data at a time"
_DOCTOR = "run `rmm-uvm doctor` to see what it needs"
_NEW_MONITOR = "start a new monitor"  # the remedy that reasons name for which there is no other


def own_remedies(*, ours: bool, budgeted: bool) -> str:
    """Return what this package itself can do about traffic, before what the program can do.

    Parameters
    ----------
    ours : bool
        The pool is one of this package.
    budgeted : bool
        It has a budget.

    Returns
    -------
    str
        Ends where another remedy goes on; empty for pools of others.

    Examples
    --------
    >>> own_remedies(ours=True, budgeted=False)
    'keep a budget (device_budget="auto"), or '
    """
    if budgeted:
        return "say what is used next (rmm_uvm.touch) and what is not (rmm_uvm.evict), or "
    return 'keep a budget (device_budget="auto"), or ' if ours else ""


def footprint_found(
    row: SampleRow, fits_bytes: int, value: float, threshold: float, remedies: str = ""
) -> Finding:
    """Return the finding: more is allocated than fits. `remedies` as of `own_remedies`."""
    return _finding(
        "footprint",
        row,
        value,
        threshold,
        f"{format_bytes(row.footprint_bytes)} are allocated and "
        f"{format_bytes(fits_bytes)} fit on the device: {value:.2f} times as much "
        f"(threshold {threshold:g})",
        f"{remedies}process the data in parts{'' if remedies else ', or expect migrations'}",
    )


def eviction_found(
    row: SampleRow, device: RecordedDevice, value: float, threshold: float, remedies: str = ""
) -> Finding:
    """Return the finding: pages leave, sample after sample. Both figures in bytes per second.

    `remedies` as of `own_remedies`.
    """
    message = f"{_rate(value)} are evicted to the host to make room (threshold {_rate(threshold)})"
    remedy = f"{remedies}{_LESS_DATA}"
    known = row.knows(Known.FOOTPRINT)
    if known and row.footprint_bytes > device.capacity_bytes:
        remedy += (
            f": {format_bytes(row.footprint_bytes)} are allocated, "
            f"{format_bytes(device.capacity_bytes)} fit"
        )
    elif known and row.managed_bytes > device.capacity_bytes:
        remedy = (
            f"begin with one large slab, initial_pool_size=0.9: the pool holds "
            f"{format_bytes(row.managed_bytes)} for {format_bytes(row.footprint_bytes)} allocated"
        )
    return _finding("eviction", row, value, threshold, message, remedy)


def device_taken_found(row: SampleRow, device: RecordedDevice, rate: float) -> Finding:
    """Return the finding: others hold the room that managed memory needs."""
    others_bytes = row.device_used_bytes - row.resident_bytes
    room_bytes = device.total_bytes - row.managed_bytes
    return _finding(
        "device_taken",
        row,
        others_bytes,
        room_bytes,
        f"{_rate(rate)} are evicted although managed memory alone would fit: cudaMalloc and "
        f"other processes hold {format_bytes(others_bytes)} of the device, and only "
        f"{format_bytes(room_bytes)} are left over",
        "free device memory held outside the pool (nvidia-smi shows whose it is)",
    )


def prefetch_found(row: SampleRow, prefetch: str | None, value: float, threshold: float) -> Finding:
    """Return the finding: what is prefetched pushes out what is used."""
    better = "auto" if prefetch == "always" else "never"
    return _finding(
        "prefetch",
        row,
        value,
        threshold,
        f"prefetching evicts: {_percent(value)} of what came to the full device was prefetched "
        f"(threshold {_percent(threshold)})",
        f'try prefetch="{better}", or work on less data at a time',
    )


def amplification_found(
    row: SampleRow,
    moved_bytes: int,
    seconds: float,
    value: float,
    threshold: float,
    remedies: str = "",
) -> Finding:
    """Return the finding: the same bytes move again and again. `remedies` as of `own_remedies`."""
    return _finding(
        "amplification",
        row,
        value,
        threshold,
        f"the same data come back to the device again and again: {format_bytes(moved_bytes)} in "
        f"{seconds:.1f} s, {value:.1f} times what is in use (threshold {threshold:g})",
        f"{remedies}finish with one part of the data before the next begins",
    )


def host_memory_found(
    row: SampleRow,
    device: RecordedDevice,
    needed_bytes: int,
    available_bytes: int,
    source: str,
    threshold: float,
) -> Finding:
    """Return the finding: the host cannot take the bytes that will leave the device."""
    excess_bytes = row.footprint_bytes - device.capacity_bytes
    remedy = "allocate less, or the kernel may end the process"
    if source:
        remedy = f"raise the container's memory limit ({source}), or the kernel may end the process"
    return _finding(
        "host_memory",
        row,
        needed_bytes,
        threshold * available_bytes,
        f"{format_bytes(excess_bytes)} do not fit on the device, of which "
        f"{format_bytes(needed_bytes)} must still go to the host, which has "
        f"{format_bytes(available_bytes)} left",
        remedy,
    )


def too_large_found(row: SampleRow, device: RecordedDevice, budget: ResidencyStatistics) -> Finding:
    """Return the finding: the budget cannot hold what one request asks for."""
    words = too_large(budget, device.total_bytes)
    return _finding("budget", row, budget.too_large_bytes, budget.budget_bytes, *words)


def prediction_found(row: SampleRow, budget: ResidencyStatistics) -> Finding:
    """Return the finding: the predictor is right too seldom, and is off."""
    words = prediction_off(budget)
    return _finding("prediction", row, budget.switched_off, 0, *words)


def waiting_found(
    row: SampleRow,
    budget: ResidencyStatistics,
    lately: Lately,
    used_bytes: int,
    value: float,
    threshold: float,
) -> Finding:
    """Return the finding: much of the time goes by in which requests wait for the budget."""
    words = waiting(budget, lately, used_bytes, threshold)
    return _finding("waiting", row, value, threshold, *words)


def source_unavailable(row: SampleRow, name: str, reason: str) -> Finding:
    """Return the finding: a source does not work."""
    readable = name.replace("_", " ")
    what, _, remedy = reason.rpartition(": ")
    if remedy != _NEW_MONITOR:
        what, remedy = reason, _DOCTOR
    return _finding("monitor", row, 0.0, 1.0, f"not watched: {readable} ({what})", remedy)


def counters_lost(row: SampleRow, samples: int) -> Finding:
    """Return the finding: a source worked and stopped."""
    message = f"the byte counters have not answered for {samples} samples"
    return _finding("monitor", row, samples, samples, message, "start the monitor again")


def _finding(
    kind: str, row: SampleRow, value: float, threshold: float, message: str, remedy: str
) -> Finding:
    return Finding(
        kind=kind,
        device_id=row.device_id,
        time_seconds=row.seconds,
        value=float(value),
        threshold=float(threshold),
        message=message,
        remedy=remedy,
    )


def _rate(bytes_per_second: float) -> str:
    """Return a rate in decimal units, as reports have it and links are specified in."""
    scaled = bytes_per_second
    for unit in ("B/s", "kB/s", "MB/s"):
        if float(f"{scaled:.3g}") < 1000:
            return f"{scaled:.3g} {unit}"
        scaled /= 1000
    return f"{scaled:.1f} GB/s"


def _percent(fraction: float) -> str:
    return f"{min(fraction, 1.0):.0%}"
