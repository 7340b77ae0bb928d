# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds where the memory of tensors is."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["SMALL_BYTES", "Extent", "bytes_of_blocks", "extents_of"]

Extent = tuple[int, int, int]
"""Address, bytes, and the first byte of the allocation."""

SMALL_BYTES = 1 << 20  # torch's allocator keeps what is smaller in segments of their own
_DENSE = (torch.strided,)


def extents_of(
    tensors: Iterable[torch.Tensor | None], more_than_bytes: int = SMALL_BYTES
) -> list[Extent]:
    """Return the memory of tensors on a GPU, without that of small ones.

    Parameters
    ----------
    tensors : iterable of torch.Tensor or None
        Views stand for all that they are views of.
    more_than_bytes : int
        What has no more than this is small.
    """
    found: list[Extent] = []
    for tensor in tensors:
        if tensor is None or not tensor.is_cuda or tensor.layout not in _DENSE:
            continue
        try:
            storage = tensor.untyped_storage()
            nbytes = storage.nbytes()
            # A fake tensor has an address for now, and torch warns of whoever asks for it.
            if nbytes <= more_than_bytes or storage.device.type == "meta":
                continue
            address = storage.data_ptr()
        except (RuntimeError, NotImplementedError):
            continue  # a tensor that stands for others: of torch.func, sharded, or without data
        if address:
            found.append((address, nbytes, address))
    return found


def bytes_of_blocks(extents: Iterable[Extent]) -> int:
    """Return the bytes of all blocks of 2 MiB that memory is in, which move as a whole.

    Examples
    --------
    >>> bytes_of_blocks([(0, 1, 0), (1 << 20, 1 << 20, 1 << 20), (3 << 20, 2 << 20, 3 << 20)]) >> 20
    6
    """
    blocks: set[int] = set()
    for address, nbytes, _ in extents:
        blocks.update(range(address // VA_BLOCK_BYTES, -(-(address + nbytes) // VA_BLOCK_BYTES)))
    return len(blocks) * VA_BLOCK_BYTES
