# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeping a sampler informed of one device's chain, which the program may replace at any time."""

from __future__ import annotations

from typing import Any

from rmm_uvm._lib.residency import Prefetcher
from rmm_uvm.device_info import Availability
from rmm_uvm.watch import footprint

__all__ = ["WatchedChain"]

_AVAILABLE = Availability(available=True)


class WatchedChain:
    """The chain of one device, as of the last `refresh`.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    sampler : Sampler
        Is told the levels, or where to read them.

    Attributes
    ----------
    own, foreign : Availability
        Whether the chain is ours, and whether it is another's that tells its footprint.

    Notes
    -----
    Keeps no resource alive, only its prefetcher, which owns no memory. Not thread-safe.
    """

    def __init__(self, device_id: int, sampler: Any) -> None:
        self.device_id = device_id
        self.own = self.foreign = Availability(available=False, reason="not looked at yet")
        self.prefetch: str | None = None
        self._sampler = sampler
        self._prefetcher: Prefetcher | None = None
        self._skipped: dict[str, int] = {}
        self._skipped_before: dict[str, int] = {}

    def refresh(self) -> None:
        """Look at the chain, and tell the sampler."""
        adaptor = footprint.own_adaptor(self.device_id)
        if adaptor is not None:
            self.own = _AVAILABLE
            self.foreign = Availability(available=False, reason="the chain is of rmm_uvm")
            self.prefetch = adaptor.prefetch
            self._prefetcher = adaptor.managed_mr.prefetcher
            self._sampler.set_external_footprint(
                self.device_id, adaptor.get_allocated_bytes(), adaptor.managed_mr.slab_bytes
            )
            return
        self.prefetch = self._prefetcher = None
        self.own = Availability(
            available=False, reason=f"no pool of rmm_uvm on device {self.device_id}"
        )
        levels = footprint.foreign_levels(self.device_id)
        if levels is None:
            outer = next(iter(footprint.chain_names(self.device_id)), "no resource")
            self.foreign = Availability(
                available=False,
                reason=f"RMM has {outer}, which does not tell what is allocated: wrap it in "
                "rmm.mr.StatisticsResourceAdaptor",
            )
            return
        self.foreign = _AVAILABLE
        self._sampler.set_external_footprint(
            self.device_id, levels.footprint_bytes, levels.managed_bytes
        )

    @property
    def prefetch_skipped(self) -> dict[str, int] | None:
        """Requests that prefetched nothing, by reason; None without a resource of ours."""
        if self._prefetcher is None:
            return None
        return dict(self._prefetcher.statistics()["skipped"])
