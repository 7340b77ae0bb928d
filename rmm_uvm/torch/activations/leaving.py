# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which tensors that autograd keeps may leave the device as copies."""

from __future__ import annotations

import torch

__all__ = ["address_that_may_leave"]


def address_that_may_leave(tensor: torch.Tensor, device: torch.device, small_bytes: int) -> int:
    """Return where a tensor's storage begins, if a copy of it may take its place; else 0.

    Parameters
    ----------
    tensor : torch.Tensor
        No parameter, no view of one, no subclass, and at least half of its storage.
    device : torch.device
        That it has to be on.
    small_bytes : int
        Storages of no more than that are not copied.
    """
    if (
        type(tensor) is not torch.Tensor  # a parameter, or something of the program's own
        or tensor.layout is not torch.strided
        or 2 * tensor.nbytes <= small_bytes  # most of them: half of a storage
        or tensor.device != device
        or tensor.is_nested
        or tensor.is_quantized
        or tensor.is_conj()
        or tensor.is_neg()
        or is_parameter(tensor)
    ):
        return 0
    try:
        storage = tensor.untyped_storage()
        nbytes, address = storage.nbytes(), storage.data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0  # as in `extents_of`
    return address if nbytes > small_bytes and 2 * tensor.nbytes >= nbytes else 0


def is_parameter(tensor: torch.Tensor) -> bool:
    """Whether it is one, or a view of one; a frozen one, too."""
    base = tensor._base if tensor._is_view() else None
    leaf = tensor if base is None else base
    return isinstance(leaf, torch.nn.Parameter) or bool(leaf.is_leaf and leaf.requires_grad)
