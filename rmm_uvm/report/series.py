# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The samples of one device as columns: what is not known is left out, never taken for 0.

Covers totals and peaks of any stretch of time, and rates. Does not cover several stretches; see
`rmm_uvm.report.figures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.recording.sample import Known

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEVELS", "TOTALS", "DeviceSeries"]

TOTALS: dict[str, Known] = {
    "host_to_device_bytes": Known.COUNTERS,
    "device_to_host_bytes": Known.COUNTERS,
    "evicted_bytes_estimate": Known.COUNTERS,
    "prefetched_bytes": Known.FOOTPRINT,
    "discarded_bytes": Known.FOOTPRINT,
    "cpu_faults": Known.FAULTS,
    "gpu_faults": Known.FAULTS,
    "waited_ns": Known.FOOTPRINT,
}
"""Fields that count since the monitor began, and the bit that says that one is known."""

LEVELS: dict[str, Known] = {
    "footprint_bytes": Known.FOOTPRINT,
    "managed_bytes": Known.FOOTPRINT,
    "resident_bytes": Known.RESIDENT,
    "device_used_bytes": Known.DEVICE,
}
"""Fields that are of the moment, and the bit that says that one is known."""


class DeviceSeries:
    """Columns of one device.

    Parameters
    ----------
    samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        Of one device, in order of time.

    Attributes
    ----------
    seconds : ndarray of float, shape (n_samples,)
        Since the monitor began.
    resident_exact : bool
        The resident bytes are no estimate.

    Notes
    -----
    Reading is thread-safe.
    """

    def __init__(self, samples: NDArray[np.void]) -> None:
        self._samples = samples
        self.seconds: NDArray[np.float64] = samples["time_ns"] / 1e9
        resident = self._known(Known.RESIDENT)
        self.resident_exact = bool(np.all(self._known(Known.RESIDENT_EXACT)[resident]))

    def _known(self, bit: Known) -> NDArray[np.bool_]:
        return np.asarray((self._samples["known"] & int(bit)) != 0)

    def values(self, field: str) -> NDArray[np.float64]:
        """Return a field of all samples, shape (n_samples,), NaN where it is not known."""
        known = self._known((TOTALS | LEVELS)[field])
        return np.where(known, self._samples[field].astype(np.float64), np.nan)

    def total(self, field: str) -> int | None:
        """Return a total as of the last sample that knows it, exact; None if none does."""
        known = np.flatnonzero(self._known(TOTALS[field]))
        return int(self._samples[field][known[-1]]) if len(known) else None

    def totals_at(self, field: str, seconds: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return a total at any times, between two samples in proportion; None if never known."""
        known = self._known(TOTALS[field])
        if not known.any():
            return None
        times = np.concatenate(([0.0], self.seconds[known]))
        totals = np.concatenate(([0.0], self._samples[field][known].astype(np.float64)))
        return np.interp(seconds, times, totals)

    def peak(self, field: str, begin_seconds: float, end_seconds: float) -> int | None:
        """Return the most of a level within a stretch; None if it is not known in it.

        The last sample before the stretch counts: its level still held when the stretch began.
        """
        first = max(int(np.searchsorted(self.seconds, begin_seconds, side="right")) - 1, 0)
        last = int(np.searchsorted(self.seconds, end_seconds, side="right"))
        known = (self._samples["known"][first:last] & int(LEVELS[field])) != 0
        levels = self._samples[field][first:last][known]
        return int(levels.max()) if len(levels) else None

    def rates(self, field: str) -> NDArray[np.float64]:
        """Return what a total grew by a second up to each sample, shape (n_samples,).

        NaN where it, or what came before it, is not known.
        """
        return rates_of(self.seconds, self.values(field))


def rates_of(seconds: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much totals grew a second up to each time; the first counts from 0 on."""
    elapsed = np.diff(seconds, prepend=0.0)
    grown = np.diff(totals, prepend=0.0)
    rates: Any = np.full(len(seconds), np.nan)
    # A total that shrank began anew: nothing can be said of that interval.
    usable = (elapsed > 0) & (grown >= 0)
    rates[usable] = grown[usable] / elapsed[usable]
    return np.asarray(rates)
