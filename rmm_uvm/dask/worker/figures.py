# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's figures as they travel in its heartbeat: one plain value on both ends.

The receiving end may have another version of this package, so reading takes what it knows and
refuses nothing. What is not known is None, never 0.

See Also
--------
rmm_uvm.dask.worker.telemetry : where the figures come from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["NAME", "NOT_THERE", "NO_PRELOAD", "WorkerFigures", "name_order"]

_MOST_OTHERS = 64  # more than a host has devices

NAME = "rmm-uvm"
"""Of the figures among a worker's metrics, and of the topic of its events."""

NOT_THERE = "rmm_uvm is not installed there"
"""Why a worker that is asked has nothing to say: Python finds no package."""

NO_PRELOAD = "no preload rmm_uvm.dask (or no package) there"
"""Why a worker's heartbeat says nothing; which of the two it is cannot be seen from here."""


@dataclasses.dataclass(frozen=True)
class WorkerFigures:
    """Figures of a worker: its device's memory, and what it sent and received.

    Parameters
    ----------
    reason : str
        Why there are no figures, or fewer; empty when all is well.
    device_id : int or None
        CUDA ordinal in the worker, of its first device.
    device_name : str
        As the driver names it.
    simulated : bool or None
        A model, not a GPU.
    devices_total : int or None
        Devices of which the worker tells.
    footprint_bytes, resident_bytes, capacity_bytes, device_used_bytes : int or None
        Levels; see `rmm_uvm.watch.snapshot.Snapshot`.
    resident_exact : bool or None
        `resident_bytes` is no estimate.
    oversubscription_factor : float or None
        Footprint over capacity: 1.0 is full.
    host_to_device_bytes, device_to_host_bytes, evicted_bytes_estimate : int or None
        Totals since the monitor began.
    host_to_device_bytes_per_second, device_to_host_bytes_per_second : float or None
        Mean rates since the heartbeat before.
    evicted_bytes_estimate_per_second : float or None
        The same of evictions; an estimate.
    findings_total : int or None
        Findings of the monitor since it began.
    finding, finding_kind : str
        The last of them, as its warning reads; empty if there is none.
    ipc_pool_bytes : int or None
        Size of the IPC pool; 0 without one.
    comm : mapping of str to float
        Totals of transfers between workers; see `rmm_uvm.dask.comm.statistics.CommTotals`.
    missing : mapping of str to str
        Sources that ought to work and do not, with the reason.
    others : tuple of WorkerFigures
        The same of the worker's other devices; what is the process', such as `comm`, is empty.

    Examples
    --------
    >>> WorkerFigures.from_metrics({}).reason
    'no preload rmm_uvm.dask (or no package) there'
    >>> sent = WorkerFigures(footprint_bytes=3).to_dict()
    >>> WorkerFigures.from_metrics({"rmm-uvm": {**sent, "of a later version": 1}}).footprint_bytes
    3
    """

    reason: str = ""
    device_id: int | None = None
    device_name: str = ""
    simulated: bool | None = None
    devices_total: int | None = None
    footprint_bytes: int | None = None
    resident_bytes: int | None = None
    capacity_bytes: int | None = None
    device_used_bytes: int | None = None
    resident_exact: bool | None = None
    oversubscription_factor: float | None = None
    host_to_device_bytes: int | None = None
    device_to_host_bytes: int | None = None
    evicted_bytes_estimate: int | None = None
    host_to_device_bytes_per_second: float | None = None
    device_to_host_bytes_per_second: float | None = None
    evicted_bytes_estimate_per_second: float | None = None
    findings_total: int | None = None
    finding: str = ""
    finding_kind: str = ""
    ipc_pool_bytes: int | None = None
    comm: Mapping[str, float] = dataclasses.field(default_factory=dict)
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)
    others: tuple[WorkerFigures, ...] = ()

    @property
    def of_devices(self) -> tuple[WorkerFigures, ...]:
        """The figures of each device, these first."""
        return (self, *self.others)

    def to_dict(self) -> dict[str, Any]:
        """Return every field, as values that msgpack and JSON can hold."""
        shown = {name: getattr(self, name) for name in _CHECKS}
        others = [each.to_dict() for each in self.others]
        return {**shown, "comm": dict(self.comm), "missing": dict(self.missing), "others": others}

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, Any]) -> WorkerFigures:
        """Return what a worker's metrics, as the scheduler keeps them, say.

        Parameters
        ----------
        metrics : mapping of str to object
            All of them. What is missing in ours, or of another type than expected, is not known.
        """
        sent = metrics.get(NAME)
        if not isinstance(sent, Mapping):
            return cls(reason=NO_PRELOAD)
        others = sent.get("others")
        found = others[:_MOST_OTHERS] if isinstance(others, list | tuple) else ()
        return cls(
            **_read(sent),
            others=tuple(cls(**_read(each)) for each in found if isinstance(each, Mapping)),
        )


def name_order(name: str) -> tuple[bool, int, str]:
    """Return by what names of workers are sorted: numbers by their size, before other names.

    Examples
    --------
    >>> sorted(["10", "9", "gpu-b", "gpu-a"], key=name_order)
    ['9', '10', 'gpu-a', 'gpu-b']
    """
    number = name.isascii() and name.isdecimal() and len(name) < 20
    return not number, int(name) if number else 0, name


def _read(sent: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what is known of a device, of all that was sent."""
    return {k: v for k, v in sent.items() if k in _CHECKS and _CHECKS[k](v)}


def _is_mapping_of(value: object, kinds: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(k, str) and isinstance(v, kinds) for k, v in value.items()
    )


def _is_number(value: object, kinds: Any) -> bool:
    # A bool is a number for Python, and none for people.
    return value is None or (isinstance(value, kinds) and not isinstance(value, bool))


_CHECK_OF_TYPE: dict[Any, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool | None": lambda value: value is None or isinstance(value, bool),
    "int | None": lambda value: _is_number(value, int),
    "float | None": lambda value: _is_number(value, int | float),
    "Mapping[str, float]": lambda value: _is_mapping_of(value, int | float),
    "Mapping[str, str]": lambda value: _is_mapping_of(value, str),
}
_CHECKS = {
    field.name: _CHECK_OF_TYPE[field.type]
    for field in dataclasses.fields(WorkerFigures)
    if field.name != "others"
}
