# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of the time between two samples of one device.

Does not cover what follows from them, see `rmm_uvm.watch.judging.policy`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rmm_uvm.recording.sample import Known

__all__ = ["BEGIN", "Interval", "SampleRow", "gone_after", "interval_between", "rows_of"]


class SampleRow(NamedTuple):
    """One sample as plain integers; fields as in `rmm_uvm.recording.sample.SAMPLE_DTYPE`."""

    time_ns: int = 0
    host_to_device_bytes: int = 0
    device_to_host_bytes: int = 0
    own_to_host_bytes: int = 0
    evicted_bytes_estimate: int = 0
    prefetched_bytes: int = 0
    discarded_bytes: int = 0
    cpu_faults: int = 0
    gpu_faults: int = 0
    footprint_bytes: int = 0
    managed_bytes: int = 0
    resident_bytes: int = 0
    device_used_bytes: int = 0
    waited_ns: int = 0
    device_id: int = 0
    known: int = 0

    @property
    def seconds(self) -> float:
        """Time since the monitor began."""
        return self.time_ns / 1e9

    def knows(self, what: Known) -> bool:
        """Whether all of `what` is known in this sample."""
        return self.known & what == what


BEGIN = SampleRow()
"""Before the first sample: totals count from zero."""


class Interval(NamedTuple):
    """The time between two samples.

    Parameters
    ----------
    seconds : float
        How long, >= 0.
    evicted_bytes : int
        Written back to make room; 0 when it is certain that nothing had to leave.
    to_device_bytes : int
        Moved to the device.
    own_bytes : int
        Prefetched by this package. What it discarded is not in it: an allocation over dead contents
        takes room on the device however its pages get there.
    """

    seconds: float
    evicted_bytes: int
    to_device_bytes: int
    own_bytes: int

    def followed_by(self, after: Interval) -> Interval:
        """Return this interval and the next as one.

        Examples
        --------
        >>> Interval(0.5, 1, 2, 3).followed_by(Interval(1.0, 10, 20, 30))
        Interval(seconds=1.5, evicted_bytes=11, to_device_bytes=22, own_bytes=33)
        """
        return Interval(
            self.seconds + after.seconds,
            self.evicted_bytes + after.evicted_bytes,
            self.to_device_bytes + after.to_device_bytes,
            self.own_bytes + after.own_bytes,
        )


def rows_of(samples: np.ndarray[Any, np.dtype[np.void]]) -> list[SampleRow]:
    """Return samples as rows."""
    return [SampleRow._make(values) for values in samples.tolist()]


def interval_between(before: SampleRow, after: SampleRow, total_bytes: int) -> Interval | None:
    """Return what happened between two samples of a device with `total_bytes` of memory.

    None without byte counters, or when time went back. Totals that fell count as nothing moved:
    the source began anew.
    """
    if after.time_ns < before.time_ns or not after.knows(Known.COUNTERS):
        return None
    evicted_bytes = max(0, after.evicted_bytes_estimate - before.evicted_bytes_estimate)
    if evicted_bytes and all_fits(after, total_bytes):
        evicted_bytes = 0
    own_bytes = 0
    if after.knows(Known.FOOTPRINT):
        own_bytes = max(0, after.prefetched_bytes - before.prefetched_bytes)
    return Interval(
        seconds=(after.time_ns - before.time_ns) / 1e9,
        evicted_bytes=evicted_bytes,
        to_device_bytes=max(0, after.host_to_device_bytes - before.host_to_device_bytes),
        own_bytes=own_bytes,
    )


def gone_after(gone_bytes: int, before: SampleRow, after: SampleRow) -> int:
    """Return how much of the managed memory lies on the host after a sample.

    As much as left the device and did not come back, and no more than there is: what was freed lies
    nowhere. Where the managed memory is not known, the footprint stands for it.

    Parameters
    ----------
    gone_bytes : int
        The same after the sample `before`.
    before, after : SampleRow
        Samples in a row. Totals that fell count as nothing moved.

    Examples
    --------
    >>> full = SampleRow(device_to_host_bytes=50, managed_bytes=90, known=Known.FOOTPRINT)
    >>> gone_after(0, BEGIN, full), gone_after(50, full, full._replace(managed_bytes=20))
    (50, 20)
    """
    gone_bytes += max(0, after.device_to_host_bytes - before.device_to_host_bytes)
    gone_bytes -= max(0, after.host_to_device_bytes - before.host_to_device_bytes)
    gone_bytes = max(0, gone_bytes)
    if not after.knows(Known.FOOTPRINT):
        return gone_bytes
    return min(gone_bytes, after.managed_bytes or after.footprint_bytes)


def all_fits(row: SampleRow, total_bytes: int) -> bool:
    """Return whether the managed memory that is not on the device would find room there.

    If so nothing needs to leave, and what did was wanted by the CPU.
    """
    if not row.managed_bytes or not row.knows(Known.RESIDENT | Known.DEVICE):
        return False
    free_bytes = total_bytes - row.device_used_bytes
    return row.managed_bytes - row.resident_bytes <= free_bytes
