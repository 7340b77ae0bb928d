# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps optimisers' states on the device: for ``evict="activations"``."""

from __future__ import annotations

import threading

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.torch.extents import Extent

__all__ = ["PinnedState"]

_MOST_FRACTION = 1 / 2  # of the budget


class PinnedState:
    """Memory that is pinned until it is freed, as far as half of the budget goes. Thread-safe.

    Parameters
    ----------
    managed : ManagedResidency
        Keeps the budget.
    """

    def __init__(self, managed: ManagedResidency) -> None:
        self._managed = managed
        self._bytes: dict[int, int] = {}  # by address
        self._lock = threading.RLock()  # a free may come from a collection within

    def keep(self, extents: list[Extent]) -> None:
        """Pin what is not pinned yet, while there is room."""
        residency = self._managed.residency()
        assert residency is not None
        room = int(residency["budget_bytes"] * _MOST_FRACTION) - sum(self._bytes.values())
        for address, nbytes, _ in extents:
            with self._lock:
                if address in self._bytes or nbytes > room:
                    continue
                room -= nbytes
                self._bytes[address] = nbytes
                self._managed.pin(address, nbytes)

    def freed(self, address: int) -> None:
        """Take note of a free, before the address can be somebody else's."""
        with self._lock:
            nbytes = self._bytes.pop(address, None)
            if nbytes is not None:
                self._managed.unpin(address, nbytes)

    def end(self) -> None:
        """Pin nothing any more; while frees are told."""
        with self._lock:
            while self._bytes:  # a free may come in between
                self._managed.unpin(*self._bytes.popitem())
