# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The recording of a monitor, as one frozen value; reports are pure functions of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.line_traffic import LineTraffic

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "CAUSES",
    "PEAK",
    "RecordedDevice",
    "Recording",
    "Stage",
    "described",
    "exact_peak_bytes",
]

CAUSES = ("unknown", "user", "coherence", "prefetch", "eviction", "access_counters")
"""Why pages move, in CUPTI's order; see docs/use/metrics.md."""


@dataclasses.dataclass(frozen=True)
class RecordedDevice:
    """The facts about a watched device that do not change.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    name : str
        As the driver names it.
    uuid : str
        Such as "GPU-...".
    total_bytes : int
        Device memory.
    capacity_bytes : int
        Managed capacity: device memory that managed pages can use.
    simulated : bool
        A model, not a GPU.
    chain : tuple of str
        Names of the memory resources from the outermost to the source; empty when there is none.
    """

    device_id: int
    name: str
    uuid: str
    total_bytes: int
    capacity_bytes: int
    simulated: bool = False
    chain: tuple[str, ...] = ()


DeviceFacts = RecordedDevice
"""The name that pickles of former versions have for it."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A named stretch of time; stages nest.

    Parameters
    ----------
    name : str
        As given to `rmm_uvm.stage`.
    begin_seconds, end_seconds : float
        Since the monitor began; an end of NaN: it had not ended.
    depth : int
        0 for the outermost.
    thread : str
        Name of the thread that ran it.
    """

    name: str
    begin_seconds: float
    end_seconds: float
    depth: int = 0
    thread: str = ""


@dataclasses.dataclass(frozen=True)
class Recording:
    """Everything a monitor saw.

    Parameters
    ----------
    samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        In order of time, devices interleaved.
    devices : tuple of RecordedDevice
        The watched devices.
    stages : tuple of Stage
        In order of their begin.
    findings : tuple of Finding
        In order of time.
    sources : mapping of str to Availability
        Which sources there were, by name; those that were not, with the reason.
    causes : mapping of str to object, or None
        With attribution: ``{"columns": [...], "rows": [[time_seconds, device_id, ...], ...]}``,
        totals by direction and cause; None without.
    busiest : tuple of (int, int, int)
        With attribution: address, bytes to the device and bytes to the host of the 2 MiB blocks
        that moved most.
    budgets : mapping of int to mapping
        By device, where there is a budget: the fields of `rmm_uvm.residency.ResidencyStatistics` as
        they were last.
    lines : LineTraffic or None
        What moved by line of the program, where that was asked for; None otherwise.
    began : str
        Date and time of the start, ISO 8601, UTC.
    interval_seconds : float
        Between two samples, as asked.
    lost_samples : int
        Samples that the ring dropped because it was full; the oldest go first.
    settings : mapping of str to str
        What was set, by name, for people to read.
    versions : mapping of str to str
        Of packages and the driver.
    cost_seconds : float
        Processor time that watching took.
    failure : str
        How the program ended, in one sentence, where it did not end well; empty where it did, or
        where nobody saw it end.
    about : mapping of str to str
        What was watched, for people to read: "program" and "host", and of a whole run its
        "exit status" and "pool".
    """

    samples: np.ndarray[Any, np.dtype[np.void]]
    devices: tuple[RecordedDevice, ...]
    stages: tuple[Stage, ...] = ()
    findings: tuple[Finding, ...] = ()
    sources: Mapping[str, Availability] = dataclasses.field(default_factory=dict)
    causes: Mapping[str, Any] | None = None
    busiest: tuple[tuple[int, int, int], ...] = ()
    budgets: Mapping[int, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    lines: LineTraffic | None = None
    began: str = ""
    interval_seconds: float = 0.0
    lost_samples: int = 0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cost_seconds: float = 0.0
    failure: str = ""
    about: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether any device is a model: reports say so first."""
        return any(device.simulated for device in self.devices)

    @property
    def duration_seconds(self) -> float:
        """Time from the start to the last sample."""
        return float(self.samples["time_ns"][-1]) / 1e9 if len(self.samples) else 0.0

    def of(self, device_id: int) -> np.ndarray[Any, np.dtype[np.void]]:
        """Return the samples of one device, in order of time."""
        found: np.ndarray[Any, np.dtype[np.void]] = self.samples[
            self.samples["device_id"] == device_id
        ]
        return found


PEAK = "peak_live_bytes"
"""Setting of a recording: most bytes that the pool had allocated at a time, exact."""

_MOST_DIGITS = 20  # of a number of 64 bits; the setting is a text that another process sent


def exact_peak_bytes(recording: Recording) -> int | None:
    """Return the most bytes that the run's pool had allocated at a time; None if not known.

    Parameters
    ----------
    recording : Recording
        What was watched.
    """
    peak = str(recording.settings.get(PEAK, ""))
    return int(peak) if peak.isdecimal() and len(peak) <= _MOST_DIGITS else None


def described(peaks_bytes: Iterable[int | None]) -> dict[str, str]:
    """Return the setting of a recording, given the peak of each device that is watched.

    None where it is not known, where nothing was allocated, and of several devices: a recording
    has one such peak, and no reader could tell whose.

    Examples
    --------
    >>> described([8388608]), described([0]), described([None]), described([1, 2])
    ({'peak_live_bytes': '8388608'}, {}, {}, {})
    """
    known = list(peaks_bytes)
    return {PEAK: str(known[0])} if len(known) == 1 and known[0] else {}
