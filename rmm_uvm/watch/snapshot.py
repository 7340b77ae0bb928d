# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of one device: at a moment (`Snapshot`), or between two (`Window`).

Plain frozen values: no GPU is asked when they are read. What is not known is None, never 0.
docs/use/metrics.md has source and exactness of every figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.recording.sample import Known
from rmm_uvm.watch.table import ShownAsTable, known_bytes

if TYPE_CHECKING:
    import numpy as np

    from rmm_uvm.recording.recorded import RecordedDevice

__all__ = [
    "NEEDS",
    "TOTALS",
    "Snapshot",
    "Window",
    "snapshot_of",
    "window_between",
]

NEEDS: dict[str, Known] = {
    **dict.fromkeys(
        ("host_to_device_bytes", "device_to_host_bytes", "own_to_host_bytes"), Known.COUNTERS
    ),
    "evicted_bytes_estimate": Known.COUNTERS | Known.DEVICE,
    **dict.fromkeys(("cpu_faults", "gpu_faults"), Known.FAULTS),
    **dict.fromkeys(
        ("prefetched_bytes", "discarded_bytes", "footprint_bytes", "managed_bytes", "waited_ns"),
        Known.FOOTPRINT,
    ),
    "resident_bytes": Known.RESIDENT,
    "device_used_bytes": Known.DEVICE,
}
"""The bits of ``known`` that a field of a sample needs to mean anything."""
_BITS = {name: int(bit) for name, bit in NEEDS.items()}  # enums are slow

TOTALS = (
    "host_to_device_bytes",
    "device_to_host_bytes",
    "own_to_host_bytes",
    "evicted_bytes_estimate",
    "prefetched_bytes",
    "discarded_bytes",
    "cpu_faults",
    "gpu_faults",
    "waited_ns",
)
"""Fields that only grow since the monitor began; the others are levels of the moment."""


@dataclasses.dataclass(frozen=True, repr=False)
class Snapshot(ShownAsTable):
    """Totals and levels of one device at one time. What is not known is None.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    time_ns : int
        Since the monitor began, ns.
    host_to_device_bytes, device_to_host_bytes : int or None
        Total of managed memory that this process moved each way, bytes; exact.
    own_to_host_bytes : int or None
        Of the second, bytes that this package asked to be moved; the ranges as asked.
    evicted_bytes_estimate : int or None
        Of the second, the rest, while the device was full; an estimate.
    prefetched_bytes, discarded_bytes : int or None
        Total that came to the device as our resources prefetched it, and that was not copied as
        they discarded it, bytes; upper bounds, which the bytes moved bound.
    cpu_faults, gpu_faults : int or None
        Total of faults on managed pages; exact. None without ``faults=True``.
    footprint_bytes : int or None
        Allocated and not freed; exact, but of a bare RMM pool its size.
    managed_bytes : int or None
        Managed memory that the pool has taken from the driver; exact.
    resident_bytes : int or None
        Managed memory on the device; an estimate unless `resident_exact`.
    device_used_bytes : int or None
        Device memory in use by all processes; exact.
    waited_ns : int or None
        In which at least one request waited for data or room, by a budget's count; a lower bound.
    capacity_bytes : int or None
        Device memory that managed pages can use, as of the monitor's start.
    device_total_bytes : int or None
        Device memory.
    resident_exact : bool
        `resident_bytes` is exact.
    simulated : bool
        A model, not a GPU.
    causes : mapping or None
        With attribution: bytes by direction and cause.
    prefetch_skipped : mapping of str to int, or None
        Requests for which our resources prefetched nothing, by reason, since the monitor began.
    budget : mapping of str to object, or None
        How the pool's budget is kept: the fields of `rmm_uvm.residency.ResidencyStatistics`, since
        the pool was made. None without a budget.
    _run_id : str
        Which run of which monitor; not shown.
    """

    device_id: int
    time_ns: int
    host_to_device_bytes: int | None = None
    device_to_host_bytes: int | None = None
    own_to_host_bytes: int | None = None
    evicted_bytes_estimate: int | None = None
    prefetched_bytes: int | None = None
    discarded_bytes: int | None = None
    cpu_faults: int | None = None
    gpu_faults: int | None = None
    footprint_bytes: int | None = None
    managed_bytes: int | None = None
    resident_bytes: int | None = None
    device_used_bytes: int | None = None
    waited_ns: int | None = None
    capacity_bytes: int | None = None
    device_total_bytes: int | None = None
    resident_exact: bool = False
    simulated: bool = False
    causes: Mapping[str, Any] | None = None
    prefetch_skipped: Mapping[str, int] | None = None
    budget: Mapping[str, Any] | None = None
    _run_id: str = dataclasses.field(default="", compare=False)

    @property
    def time_seconds(self) -> float:
        """Since the monitor began."""
        return self.time_ns / 1e9

    @property
    def oversubscription_factor(self) -> float | None:
        """Footprint over capacity: 1.0 is full. None when either is not known."""
        if self.footprint_bytes is None or not self.capacity_bytes:
            return None
        return self.footprint_bytes / self.capacity_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return every field, and `oversubscription_factor`, as values that JSON can hold."""
        shown = {k: v for k, v in dataclasses.asdict(self).items() if k != "_run_id"}
        return {**shown, "oversubscription_factor": self.oversubscription_factor}

    def _title(self) -> str:
        kind = "simulated device" if self.simulated else "device"
        return f"{kind} {self.device_id} after {self.time_seconds:.1f} s"

    def _rows(self) -> list[tuple[str, str]]:
        factor = self.oversubscription_factor
        of_capacity = "" if factor is None else f" ({factor:.2f} x capacity)"
        estimate = "" if self.resident_exact or self.resident_bytes is None else " (estimate)"
        return [
            ("footprint", known_bytes(self.footprint_bytes) + of_capacity),
            ("capacity", known_bytes(self.capacity_bytes)),
            ("resident", known_bytes(self.resident_bytes) + estimate),
            ("device in use", known_bytes(self.device_used_bytes)),
            *traffic_rows(self),
            *budget_rows(self.budget),
        ]


@dataclasses.dataclass(frozen=True, repr=False)
class Window(ShownAsTable):
    """The traffic of one device between two times. What is not known is None.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    begin_seconds, end_seconds : float
        Since the monitor began.
    host_to_device_bytes, device_to_host_bytes, own_to_host_bytes, evicted_bytes_estimate : int or \
None
        As in `Snapshot`, of this window alone; so are those that follow.
    prefetched_bytes, discarded_bytes, cpu_faults, gpu_faults, waited_ns : int or None
        As in `Snapshot`.
    peak_footprint_bytes, peak_resident_bytes : int or None
        The most that any sample within saw; None if some of them are not kept any more.
    capacity_bytes : int or None
        As in `Snapshot`.
    simulated : bool
        A model, not a GPU.
    causes : mapping or None
        With attribution: bytes by direction and cause.
    """

    device_id: int
    begin_seconds: float
    end_seconds: float
    host_to_device_bytes: int | None = None
    device_to_host_bytes: int | None = None
    own_to_host_bytes: int | None = None
    evicted_bytes_estimate: int | None = None
    prefetched_bytes: int | None = None
    discarded_bytes: int | None = None
    cpu_faults: int | None = None
    gpu_faults: int | None = None
    waited_ns: int | None = None
    peak_footprint_bytes: int | None = None
    peak_resident_bytes: int | None = None
    capacity_bytes: int | None = None
    simulated: bool = False
    causes: Mapping[str, Any] | None = None

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.end_seconds - self.begin_seconds

    @property
    def host_to_device_bytes_per_second(self) -> float | None:
        """Mean rate to the device, bytes per second."""
        return self._rate(self.host_to_device_bytes)

    @property
    def device_to_host_bytes_per_second(self) -> float | None:
        """Mean rate to the host, bytes per second."""
        return self._rate(self.device_to_host_bytes)

    @property
    def evicted_bytes_estimate_per_second(self) -> float | None:
        """Mean rate of eviction, bytes per second; an estimate."""
        return self._rate(self.evicted_bytes_estimate)

    def to_dict(self) -> dict[str, Any]:
        """Return every field, and the rates, as values that JSON can hold."""
        rates = (
            "host_to_device_bytes_per_second",
            "device_to_host_bytes_per_second",
            "evicted_bytes_estimate_per_second",
        )
        return {
            **dataclasses.asdict(self),
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in rates},
        }

    def _rate(self, nbytes: int | None) -> float | None:
        return None if nbytes is None or self.seconds <= 0 else nbytes / self.seconds

    def _title(self) -> str:
        kind = "simulated device" if self.simulated else "device"
        return f"{kind} {self.device_id}: {self.seconds:.2f} s"

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("peak footprint", known_bytes(self.peak_footprint_bytes)),
            ("capacity", known_bytes(self.capacity_bytes)),
            *traffic_rows(self),
        ]


def snapshot_of(
    row: np.void,
    facts: RecordedDevice,
    causes: Mapping[str, Any] | None = None,
    prefetch_skipped: Mapping[str, int] | None = None,
    budget: Mapping[str, Any] | None = None,
    run_id: str = "",
) -> Snapshot:
    """Return the snapshot that one sample makes.

    Parameters
    ----------
    row : void, dtype `SAMPLE_DTYPE`
        The sample.
    facts : RecordedDevice
        Of its device.
    causes, prefetch_skipped, budget, run_id
        As in `Snapshot`.
    """
    fields = dict(zip(row.dtype.names or (), row.item(), strict=True))
    known = fields["known"]
    values = {name: fields[name] if known & bit == bit else None for name, bit in _BITS.items()}
    return Snapshot(
        device_id=facts.device_id,
        time_ns=fields["time_ns"],
        **values,
        capacity_bytes=facts.capacity_bytes or None,
        device_total_bytes=facts.total_bytes or None,
        resident_exact=bool(known & int(Known.RESIDENT_EXACT)),
        simulated=facts.simulated,
        causes=causes,
        prefetch_skipped=prefetch_skipped,
        budget=budget,
        _run_id=run_id,
    )


def window_between(
    since: Snapshot | None,
    until: Snapshot,
    samples: np.ndarray[Any, np.dtype[np.void]],
    *,
    kept_from_ns: int = 0,
) -> Window:
    """Return what happened between two snapshots of one device.

    Parameters
    ----------
    since : Snapshot or None
        The earlier; None: the monitor's start.
    until : Snapshot
        The later.
    samples : ndarray, shape (n_samples,), dtype `SAMPLE_DTYPE`
        Samples of the device, for the peaks; those outside the window are left out.
    kept_from_ns : int
        Samples from before were dropped: the peaks of a window that begins earlier are None.

    Raises
    ------
    ConfigurationError
        If `since` is of another device, of another run, or later than `until`.
    """
    if since is not None and since.device_id != until.device_id:
        raise ConfigurationError(
            f"since is a snapshot of device {since.device_id}, and the window is one of device "
            f"{until.device_id}: give device={since.device_id}, or another snapshot"
        )
    if since is not None and since._run_id != until._run_id:
        raise ConfigurationError(
            "since is of another monitor, or an earlier run of this one: take a new snapshot"
        )
    begin_ns = 0 if since is None else since.time_ns
    if begin_ns > until.time_ns:
        raise ConfigurationError(
            f"since was taken at {begin_ns / 1e9:.3f} s, and this monitor has run for "
            f"{until.time_seconds:.3f} s: take the snapshot from the same monitor"
        )
    whole = begin_ns >= kept_from_ns
    inside = samples[(samples["time_ns"] >= begin_ns) & (samples["time_ns"] <= until.time_ns)]
    return Window(
        device_id=until.device_id,
        begin_seconds=begin_ns / 1e9,
        end_seconds=until.time_seconds,
        **{name: _growth(name, since, until) for name in TOTALS},
        peak_footprint_bytes=_peak("footprint_bytes", inside, since, until) if whole else None,
        peak_resident_bytes=_peak("resident_bytes", inside, since, until) if whole else None,
        capacity_bytes=until.capacity_bytes,
        simulated=until.simulated,
        causes=_cause_growth(None if since is None else since.causes, until.causes),
    )


def _growth(name: str, since: Snapshot | None, until: Snapshot) -> int | None:
    end = getattr(until, name)
    if since is None or end is None:
        return end  # type: ignore[no-any-return]
    begin = getattr(since, name)
    # A counter that was restarted (a device reset) is lower than it was.
    return None if begin is None else max(end - begin, 0)


def _peak(
    name: str,
    samples: np.ndarray[Any, np.dtype[np.void]],
    since: Snapshot | None,
    until: Snapshot,
) -> int | None:
    known = samples[(samples["known"] & NEEDS[name]) == NEEDS[name]][name]
    ends = [getattr(end, name) for end in (since, until) if end is not None]
    values = [value for value in ends if value is not None]
    if len(known):
        values.append(int(known.max()))
    return max(values, default=None)


def _cause_growth(begin: Any, end: Any) -> Any:
    """Subtract totals of the same, perhaps nested, keys."""
    if end is None:
        return None
    if isinstance(end, Mapping):
        before = begin if isinstance(begin, Mapping) else {}
        return {key: _cause_growth(before.get(key), value) for key, value in end.items()}
    if isinstance(end, int | float):
        return end - (begin or 0)
    return end


def traffic_rows(of: Snapshot | Window) -> list[tuple[str, str]]:
    """Return a row for each way that bytes moved, and for faults where they were counted."""
    rows = [
        ("to the device", known_bytes(of.host_to_device_bytes)),
        ("to the host", known_bytes(of.device_to_host_bytes)),
        ("evicted (estimate)", known_bytes(of.evicted_bytes_estimate)),
        ("prefetched (at most)", known_bytes(of.prefetched_bytes)),
        ("discarded (at most)", known_bytes(of.discarded_bytes)),
    ]
    if of.gpu_faults is not None and of.cpu_faults is not None:
        rows.append(("faults", f"{of.gpu_faults:,} of the GPU, {of.cpu_faults:,} of the CPU"))
    return rows


def budget_rows(budget: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return how a budget is kept; nothing without one."""
    if budget is None:
        return []
    names = ("resident", "budget", "overshoot", "evicted", "dropped")
    size = {name: known_bytes(budget[f"{name}_bytes"]) for name in names}
    beside = size["overshoot"]
    rows = [
        ("budget", f"{size['resident']} of {size['budget']}"),
        ("beside it", f"{beside} (estimate)" if beside != "unknown" else beside),
        ("for it", f"{size['evicted']} evicted, {size['dropped']} dropped"),
    ]
    if budget.get("neighbor_bytes"):
        now, back, given = (
            known_bytes(budget.get(f"{name}_bytes"))
            for name in ("harvested", "from_neighbor", "given_back")
        )
        rows.append(("on neighbours", f"{now}; {back} came back, {given} given back"))
    return rows
