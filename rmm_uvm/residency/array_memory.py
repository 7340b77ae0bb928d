# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an array has: ``__cuda_array_interface__``, tensors of PyTorch, plain buffers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.residency.region import Region, checked_region
from rmm_uvm.support.messages import shown

__all__ = ["buffer_region", "interface_regions", "is_tensor", "tensor_region"]

_TYPE = re.compile(r"[<>|=]?[A-Za-z](\d+)")  # "<f4"; times have more behind it: "<M8[ns]"


def interface_regions(interface: Any) -> Iterator[Region]:
    """Yield what a ``__cuda_array_interface__`` describes: the data, and the mask if there is one.

    Raises
    ------
    DataError
        If it has not got what the interface asks for.
    """
    try:
        yield _interface_region(interface)
        mask = interface.get("mask")
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"__cuda_array_interface__={shown(interface)} cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from None
    if mask is not None:
        yield from interface_regions(mask.__cuda_array_interface__)


def _interface_region(interface: Mapping[str, Any]) -> Region:
    shape = tuple(int(length) for length in interface["shape"])
    if 0 in shape:
        return Region(0, 0)  # the address means nothing
    match = _TYPE.match(interface["typestr"])
    if match is None:
        raise ValueError(f"typestr {interface['typestr']!r}")
    strides = interface.get("strides")
    return _strided(interface["data"][0], shape, strides, int(match[1]))


def is_tensor(thing: object) -> bool:
    """Tell whether it is a tensor of PyTorch; imports nothing."""
    return type(thing).__module__.partition(".")[0] == "torch" and hasattr(thing, "data_ptr")


def tensor_region(tensor: Any) -> Region:
    """Return the memory of a tensor of PyTorch.

    Not by its ``__cuda_array_interface__``, which a parameter refuses to give: it needs a gradient.

    Raises
    ------
    DataError
        If it is on the host, or has no dense memory of its own.
    """
    if not tensor.is_cuda:
        raise DataError(f"this tensor is in host memory ({tensor.device}): hints are for a device")
    try:
        address, strides = tensor.data_ptr(), tensor.stride()
    except (RuntimeError, NotImplementedError) as error:  # sparse, or made while tracing
        raise DataError(f"this tensor has no memory of its own: {error}") from None
    if tensor.numel() == 0:
        return Region(0, 0)
    item_bytes = int(tensor.element_size())
    return _strided(
        address, tuple(tensor.shape), [int(step) * item_bytes for step in strides], item_bytes
    )


def buffer_region(buffer: Any) -> Region:
    """Return the memory of what has an address and a size in bytes: ``ptr`` and ``size``."""
    nbytes = getattr(buffer, "nbytes", None)
    return checked_region(buffer.ptr, buffer.size if nbytes is None else nbytes)


def _strided(
    address: object, shape: tuple[int, ...], strides: Iterable[int] | None, item_bytes: int
) -> Region:
    """Return the bytes from the first that an array has to its last."""
    if strides is None:
        nbytes = item_bytes
        for length in shape:
            nbytes *= length
        return checked_region(address, nbytes)
    reach = [(length - 1) * int(stride) for length, stride in zip(shape, strides, strict=True)]
    before = sum(step for step in reach if step < 0)
    behind = sum(step for step in reach if step > 0)
    return checked_region(int(address) + before, behind - before + item_bytes)  # type: ignore[call-overload]
