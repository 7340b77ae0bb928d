# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The contents of a trace, read with care into one frozen value: a file can say anything."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.trace.events import EventKind

__all__ = ["Trace", "as_seconds", "as_texts", "devices_of", "footprint_samples", "sources_of"]

Rows = np.ndarray[Any, np.dtype[np.void]]
_MOST_SAMPLES = 10_000  # of one device
_LARGEST = 1 << 50  # bytes of one allocation that are believed: sums stay inside 64 bits


def footprint_samples(events: Rows, end_ns: int = 0) -> Rows:
    """Return samples in which only the footprint is known.

    Parameters
    ----------
    events : ndarray, dtype `EVENT_DTYPE`
        In order of time.
    end_ns : int
        When the recording ends: the last footprint lasts until then.

    Returns
    -------
    ndarray, dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        In order of time, at most 10,001 of each device. Where there are more events, each sample
        stands for several and has the most of them, so that no peak is lost.
    """
    parts = [_of_device(events, number, end_ns) for number in np.unique(events["device_id"])]
    if not parts:
        return np.empty(0, SAMPLE_DTYPE)
    samples = np.concatenate(parts)
    return samples[samples["time_ns"].argsort(kind="stable")]


def _of_device(events: Rows, number: int, end_ns: int) -> Rows:
    kinds = events["kind"]
    allocated = kinds == EventKind.ALLOCATE
    # A free of what was allocated before the trace takes nothing away.
    freed = (kinds == EventKind.FREE) & (events["id"] >= 0)
    chosen = np.flatnonzero((events["device_id"] == number) & (allocated | freed))
    if len(chosen) == 0:
        return np.empty(0, SAMPLE_DTYPE)
    # Columns, and not rows: what is copied is a part of the events, however many there are.
    levels = np.minimum(events["bytes"][chosen], _LARGEST).astype(np.int64)
    levels[kinds[chosen] == EventKind.FREE] *= -1
    np.cumsum(levels, out=levels)
    np.maximum(levels, 0, out=levels)
    parts = min(_MOST_SAMPLES, len(chosen))
    begins = np.linspace(0, len(chosen), parts, endpoint=False).astype(np.int64)
    samples = np.zeros(len(begins), SAMPLE_DTYPE)
    samples["footprint_bytes"] = np.maximum.reduceat(levels, begins)
    samples["time_ns"] = events["time_ns"][chosen[np.append(begins[1:], len(chosen)) - 1]]
    samples["footprint_bytes"][-1] = levels[-1]
    samples["device_id"] = number
    samples["known"] = Known.FOOTPRINT
    if end_ns > samples["time_ns"][-1]:
        samples = np.concatenate([samples, samples[-1:]])
        samples["time_ns"][-1] = end_ns
    return samples


_MOST = 1024  # entries of a list or mapping; a header can hold more, but no machine has them


def devices_of(facts: Mapping[str, Any], *rows: Any) -> tuple[RecordedDevice, ...]:
    """Return the devices that the header describes, and those that rows name besides."""
    listed = facts.get("devices")
    described: dict[int, RecordedDevice] = {}
    for one in listed[:_MOST] if isinstance(listed, list) else []:
        if isinstance(one, dict) and _is_count(one.get("device_id")):
            described.setdefault(one["device_id"], _device(one))
    seen = {int(number) for part in rows for number in np.unique(part["device_id"])[:_MOST]}
    for number in sorted(seen - set(described)):
        described[number] = RecordedDevice(number, f"device {number}", "", 0, 0)
    return tuple(described[number] for number in sorted(described))


def sources_of(facts: Mapping[str, Any]) -> dict[str, Availability]:
    """Return the sources with their reasons: ``{name: [available, reason]}`` in the header."""
    listed = facts.get("sources")
    return {
        str(name): Availability(bool(value[0]), str(value[1]))
        for name, value in _entries(listed)
        if isinstance(value, list) and len(value) == 2
    }


def as_texts(value: Any) -> dict[str, str]:
    """Return a mapping as text; empty if it is none."""
    return {str(name): str(text) for name, text in _entries(value)}


def as_seconds(value: Any) -> float:
    """Return a length of time; 0 if it is none."""
    good = isinstance(value, int | float) and 0 <= value < 1e9 and math.isfinite(value)
    return float(value) if good else 0.0


def _device(one: Mapping[str, Any]) -> RecordedDevice:
    chain = one.get("chain")
    return RecordedDevice(
        device_id=one["device_id"],
        name=str(one.get("name", "")),
        uuid=str(one.get("uuid", "")),
        total_bytes=_count(one.get("total_bytes")),
        capacity_bytes=_count(one.get("capacity_bytes")),
        simulated=one.get("simulated") is True,
        chain=tuple(str(name) for name in chain[:_MOST]) if isinstance(chain, list) else (),
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _count(value: Any) -> int:
    return int(value) if _is_count(value) else 0


def _entries(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items())[:_MOST] if isinstance(value, dict) else []


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """A trace: what a program allocated, freed and was known to touch, with stages and samples.

    Parameters
    ----------
    events : ndarray, shape (n_events,), dtype `rmm_uvm.trace.EVENT_DTYPE`
        In order of time.
    samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        What a monitor recorded meanwhile; empty if none did.
    stages : tuple of Stage
        In order of their begin; times in seconds since the trace began.
    annotations : tuple of (float, str)
        Seconds since the trace began, and text.
    facts : mapping
        What the writer knew about the run. From a file, so believe none of it.
    truncated : bool
        The end is missing: the program still ran, or was killed.
    damaged : str
        What is wrong and where; what came before is here. Empty: nothing.
    dropped : int
        Events that the writer could not record.
    kernels : tuple of (float, str)
        When each kernel began, seconds since the trace began, and its name. What is touched at that
        time is used by it. Only `rmm_uvm.trace.KernelTraceWriter` knows of them.
    """

    events: np.ndarray[Any, np.dtype[np.void]]
    samples: np.ndarray[Any, np.dtype[np.void]]
    stages: tuple[Stage, ...] = ()
    annotations: tuple[tuple[float, str], ...] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    truncated: bool = False
    damaged: str = ""
    dropped: int = 0
    kernels: tuple[tuple[float, str], ...] = ()

    @property
    def duration_seconds(self) -> float:
        """Time from the begin to the last event, sample or remark."""
        latest = [rows["time_ns"].max() / 1e9 for rows in (self.events, self.samples) if len(rows)]
        return float(max([*latest, *(seconds for seconds, _ in self.annotations)], default=0.0))

    def of(self, *kinds: EventKind) -> np.ndarray[Any, np.dtype[np.void]]:
        """Return the events of some kinds, in order of time."""
        wanted = self.events["kind"] == kinds[0]
        for kind in kinds[1:]:
            wanted |= self.events["kind"] == kind
        found: np.ndarray[Any, np.dtype[np.void]] = self.events[wanted]
        return found

    def recording(self) -> Recording:
        """Return what reports work on.

        Without samples, the footprint over time is made from allocations and frees. Capacities are
        0 where the writer did not tell them.
        """
        samples = self.samples
        if len(samples) == 0:
            samples = footprint_samples(self.events, round(self.duration_seconds * 1e9))
        return Recording(
            samples=samples[samples["time_ns"].argsort(kind="stable")],
            devices=devices_of(self.facts, self.events, samples),
            stages=self.stages,
            sources=sources_of(self.facts),
            began=str(self.facts.get("began", "")),
            interval_seconds=as_seconds(self.facts.get("interval_seconds")),
            settings=as_texts(self.facts.get("settings")),
            versions=as_texts(self.facts.get("versions")),
        )

    def __repr__(self) -> str:
        state = ", cut off" if self.truncated else ""
        state += f", damaged: {self.damaged}" if self.damaged else ""
        return (
            f"<Trace: {len(self.events)} events, {len(self.samples)} samples, "
            f"{len(self.stages)} stages in {self.duration_seconds:.1f} s{state}>"
        )
