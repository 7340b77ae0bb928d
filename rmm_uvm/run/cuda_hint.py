# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tells in a line after a program's traceback what to do about an error of CUDA.

Only answers about which something can be done outside of the program, or about which the answer's
own text misleads. Memory that ran out is told in the summary; see `rmm_uvm.run.failure`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rmm_uvm.run.failure import error_chain

__all__ = ["hint"]

# CUDA's runtime and its driver have the same number for these, and names of their own.
_NUMBERS = {
    "cudaErrorStubLibrary": 34,
    "CUDA_ERROR_STUB_LIBRARY": 34,
    "cudaErrorInsufficientDriver": 35,  # the driver itself has no such answer
    "cudaErrorDevicesUnavailable": 46,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": 46,
    "cudaErrorNoDevice": 100,
    "CUDA_ERROR_NO_DEVICE": 100,
    "cudaErrorInvalidDevice": 101,
    "CUDA_ERROR_INVALID_DEVICE": 101,
    "cudaErrorIllegalAddress": 700,
    "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
    "cudaErrorSystemNotReady": 802,
    "CUDA_ERROR_SYSTEM_NOT_READY": 802,
    "cudaErrorSystemDriverMismatch": 803,
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
    "cudaErrorCompatNotSupportedOnDevice": 804,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": 804,
    "cudaErrorUnknown": 999,
    "CUDA_ERROR_UNKNOWN": 999,
}
_NO_GPU = (34, 35, 100)
_NAME = re.compile(r"\b(?:cudaError[A-Z]\w+|CUDA_ERROR_[A-Z_]+)")
# As RMM's copies say it, and our own driver's calls.
_NUMBER = re.compile(r"^Memcpy failed with error: (\d+)$|: cu[A-Z]\w+ answered [a-z ]+ \((\d+)\)$")

_FOR_A_SIMULATED_DEVICE = (
    "the program asked CUDA for a GPU, and a simulated device has memory only: allocate with "
    "rmm.mr.get_per_device_resource(0), which rmm.DeviceBuffer(size=..., mr=...) takes too, and "
    "leave copies and kernels out; or run it where there is a GPU"
)
_WITHOUT_POOL = (
    "with --no-pool RMM's own resource asked CUDA for a GPU, and a simulated device has memory for "
    "our pool only: leave out --no-pool, or run it where there is a GPU"
)
_HINTS = {
    34: "a stub of libcuda was loaded, as CUDA's toolkit has for linking: take its folder, "
    "lib64/stubs, out of LD_LIBRARY_PATH",
    35: 'the kernel driver is older than the CUDA runtime, or there is none: "rmm-uvm doctor" '
    "tells which; update the driver, or install cuda-compat",
    46: "the GPU is in exclusive mode and another process has it: end that, or set nvidia-smi -c 0 "
    "as root",
    100: "the driver shows no GPU to this process: see CUDA_VISIBLE_DEVICES, and in a container "
    "--gpus all",
    101: "there is no such GPU: devices are numbered from 0 among those that CUDA_VISIBLE_DEVICES "
    "leaves",
    700: "a kernel used memory that is not there, perhaps long before the call that was told: "
    "CUDA_LAUNCH_BLOCKING=1 in the environment names the right one",
    802: "the GPUs of this machine are not ready: NVIDIA's fabric manager does not run, or is of "
    "another version than the driver",
    803: "libcuda and the kernel driver are of different versions: restart the machine after the "
    "update, or take an old cuda-compat away",
    804: "cuda-compat is loaded, and this GPU cannot be used with it: update the kernel driver, "
    "and take cuda-compat away",
    999: 'the driver failed without a reason: "rmm-uvm doctor" and dmesg may tell it; after a '
    "sleep of the machine, load nvidia-uvm anew as root (rmmod nvidia_uvm, modprobe nvidia_uvm)",
}


def hint(error: BaseException, *, simulated: bool = False, pool: bool = True) -> str | None:
    """Return one line about what CUDA answered; None for any other end of a program.

    Parameters
    ----------
    error : BaseException
        What the program raised. Causes of it count too, and what it arose from, unless that was
        another thing altogether: who falls back to the processor handles the answer, and may then
        find no file.
    simulated : bool
        It was run on a simulated device: whatever needs a GPU cannot be had.
    pool : bool
        A pool was asked for, which a simulated device has; else RMM asks CUDA itself.

    Examples
    --------
    >>> hint(ValueError("wrong")) is None
    True
    >>> hint(RuntimeError("Memcpy failed with error: 101"))
    'there is no such GPU: devices are numbered from 0 among those that CUDA_VISIBLE_DEVICES leaves'
    """
    for one in error_chain(error, _may_be_of_cuda):
        for number in _numbers(str(one)) if _may_be_of_cuda(one) else ():
            if simulated and number in _NO_GPU:
                return _FOR_A_SIMULATED_DEVICE if pool else _WITHOUT_POOL
            if number in _HINTS:
                return _HINTS[number]
    return None


def _may_be_of_cuda(error: BaseException) -> bool:
    """Whether libraries raise such errors for what CUDA answered: Python's own are mostly not."""
    return isinstance(error, RuntimeError | MemoryError) or type(error).__module__ != "builtins"


def _numbers(text: str) -> Iterator[int]:
    """Yield what CUDA answered, by number, as far as a text tells."""
    for name in _NAME.findall(text):
        if name in _NUMBERS:
            yield _NUMBERS[name]
    for of_copy, of_call in _NUMBER.findall(text):
        yield int(of_copy or of_call)
