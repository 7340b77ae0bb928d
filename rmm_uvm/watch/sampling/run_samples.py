# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The samples of one run of a monitor: the sampler's while it runs, and what it left afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rmm_uvm._lib.monitor import Sampler
from rmm_uvm.recording.sample import SAMPLE_DTYPE

__all__ = ["RunSamples", "Samples"]

_MOST_EDGES = 10  # samples at edges of stages, in one interval
Samples = np.ndarray[Any, np.dtype[np.void]]


class RunSamples:
    """Samples by their sequence number, from the beginning of a run to after its end.

    Parameters
    ----------
    sampler : Sampler
        Lent until `keep`.
    n_devices : int
        Rows in one of its samples.
    interval_seconds : float
        Between two samples.
    elapsed_seconds : callable
        Returns the time since the run began.

    Notes
    -----
    Thread-safe, also while `keep` runs: a reader takes the sampler once, and goes on with it.
    """

    def __init__(
        self,
        sampler: Sampler,
        n_devices: int,
        interval_seconds: float,
        elapsed_seconds: Callable[[], float],
    ) -> None:
        self._sampler: Sampler | None = sampler
        self._n_devices = n_devices
        self._interval_seconds = interval_seconds
        self._elapsed_seconds = elapsed_seconds
        self._kept: Samples = np.empty(0, SAMPLE_DTYPE)
        self._lost = 0
        self._cost_seconds = 0.0
        self._edges = (0, 0)  # number of the interval, samples at edges of stages in it

    @property
    def sampler(self) -> Sampler | None:
        """The sampler; None after `keep`."""
        return self._sampler

    @property
    def cost_seconds(self) -> float:
        """Processor time that sampling took."""
        sampler = self._sampler
        return self._cost_seconds if sampler is None else sampler.cost_seconds

    def keep(self) -> None:
        """Take over what the sampler has, and let go of it."""
        if self._sampler is None:
            return
        self._cost_seconds = self._sampler.cost_seconds
        self._kept, _, self._lost = self._sampler.samples()
        self._sampler = None

    def since(self, sequence: int = 0, /) -> tuple[Samples, int, int]:
        """Return samples from a sequence number on, the next number, and how many were lost."""
        sampler = self._sampler
        if sampler is not None:
            return sampler.samples(sequence)
        kept = self._kept[max(sequence - self._lost, 0) :]
        return kept, self._lost + len(self._kept), max(self._lost - sequence, 0)

    def newest(self, device_id: int, *, fresh: bool) -> Samples:
        """Return the newest samples of a device, oldest first; empty if there is none.

        Parameters
        ----------
        device_id : int
            CUDA ordinal.
        fresh : bool
            Take one for it, if the run goes on.
        """
        sampler = self._sampler
        if sampler is None:
            rows = self._kept
        else:
            first = sampler.next_sequence
            if not fresh or not sampler.sample_now():
                first = max(first - self._n_devices, 0)
            rows, _, _ = sampler.samples(first)
        kept: Samples = rows[rows["device_id"] == device_id]
        return kept

    def sample_now(self) -> None:
        """Take a sample; nothing after `keep`."""
        sampler = self._sampler
        if sampler is not None:
            sampler.sample_now()

    def sample_edge(self) -> None:
        """Take a sample where a stage begins or ends.

        At most `_MOST_EDGES` in an interval: many short stages must not crowd out the history.
        """
        sampler = self._sampler
        interval = int(self._elapsed_seconds() / self._interval_seconds)
        taken = self._edges[1] if self._edges[0] == interval else 0
        if sampler is None or taken >= _MOST_EDGES:
            return
        self._edges = (interval, taken + 1)
        sampler.sample_now()
