# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the memory that a kernel of a torch program uses, and the storages with an allocation.

Views share a storage, and a storage is watched by a weak reference alone: nothing lives longer for
it. What died is given back before the next kernel, so that nothing happens inside torch's own
freeing, whichever thread does it.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, NamedTuple

from rmm_uvm.planner.trials.uses import Receiver, Use

__all__ = ["Storages"]


class _Entry(NamedTuple):
    allocation: int
    nbytes: int
    watch: weakref.ref[Any]


class Storages:
    """Allocations of living storages.

    Parameters
    ----------
    receiver : Receiver
        Told of allocations and frees.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._entries: dict[int, _Entry] = {}
        # Appending is atomic, and therefore safe in whatever thread and moment a storage dies.
        self._died: deque[tuple[int, weakref.ref[Any]]] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def allocation_of(self, storage: Any) -> tuple[int, bool] | None:
        """Return a storage's allocation and whether it is new; None if it has no bytes.

        A storage that was resized is a new one.
        """
        key, nbytes = storage._cdata, storage.nbytes()
        entry = self._entries.get(key)
        if entry is not None and entry.nbytes == nbytes:
            return entry.allocation, False
        if entry is not None:
            self._receiver.free(self._entries.pop(key).allocation)
        if nbytes == 0:
            return None
        allocation = self._receiver.allocate(nbytes)
        died = self._died
        watch = weakref.ref(storage, lambda one: died.append((key, one)))
        self._entries[key] = _Entry(allocation, nbytes, watch)
        return allocation, True

    def give_back_the_dead(self) -> None:
        """Free what died since the last call, in the order of death."""
        while self._died:
            key, watch = self._died.popleft()
            entry = self._entries.get(key)
            if entry is not None and entry.watch is watch:  # not one that has its place since
                self._receiver.free(self._entries.pop(key).allocation)

    def close(self) -> None:
        """Free everything, whether it lives or not, and watch nothing any more."""
        entries, self._entries = self._entries, {}
        self._died.clear()
        for entry in entries.values():
            self._receiver.free(entry.allocation)


def use_of(tensor: Any, storages: Storages) -> tuple[Use, bool] | None:
    """Return what of its storage a tensor covers, and whether the storage is new; None for nothing.

    From the first to the last byte of a strided tensor. Tensors without a storage (sparse ones)
    are None.
    """
    if tensor.layout is not _strided():
        return None
    found = storages.allocation_of(tensor.untyped_storage())
    if found is None or tensor.numel() == 0:
        return None
    allocation, new = found
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    item_bytes = tensor.element_size()
    first_byte = tensor.storage_offset() * item_bytes
    return Use(allocation, first_byte, (last + 1) * item_bytes, writes=False, fresh=False), new


def _strided() -> Any:
    import torch

    return torch.strided
