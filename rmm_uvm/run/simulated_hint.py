# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What to do where a program asks CUDA for a GPU and only a simulated device is there."""

from __future__ import annotations

__all__ = ["hint"]

# Of CUDA's runtime, as RMM raises them: no driver, none that is new enough, no device.
_NO_GPU = ("cudaErrorInsufficientDriver", "cudaErrorNoDevice", "cudaErrorStubLibrary")
_LONGEST_CHAIN = 16


def hint(error: BaseException) -> str | None:
    """Return one line for a program that ended since it needs a GPU; None for any other end.

    Parameters
    ----------
    error : BaseException
        What the program raised; causes and contexts of it count too.

    Examples
    --------
    >>> hint(ValueError("wrong")) is None
    True
    """
    one: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if one is None:
            return None
        if type(one).__module__.startswith("rmm.") and str(one).startswith(_NO_GPU):
            return (
                "the program asked CUDA for a GPU, and a simulated device has memory only: "
                "allocate with rmm.mr.get_per_device_resource(0), which rmm.DeviceBuffer(size=..., "
                "mr=...) takes too, or run it where there is a GPU"
            )
        one = one.__cause__ or one.__context__
    return None
