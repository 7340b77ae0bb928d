# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which machine this is, and which GPUs this process sees. Opens no device."""

from __future__ import annotations

import functools
import uuid
from pathlib import Path

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability

__all__ = ["current_device_id", "machine_id", "visible"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def machine_id() -> bytes:
    """Return 16 bytes that no other machine has, nor this one after its next start.

    Raises
    ------
    AvailabilityError
        If the system does not tell.
    """
    try:
        return uuid.UUID(_BOOT_ID.read_text().strip()).bytes
    except (OSError, ValueError) as error:
        raise AvailabilityError(
            f"{_BOOT_ID} does not tell which machine this is: {error}"
        ) from None


def current_device_id() -> int:
    """Return the CUDA ordinal that this thread uses; makes no context.

    Raises
    ------
    AvailabilityError
        If there is no device.
    """
    from cuda.bindings import runtime

    error, device_id = runtime.cudaGetDevice()
    if error != runtime.cudaError_t.cudaSuccess:
        raise AvailabilityError(f"there is no CUDA device here: {error.name}")
    return int(device_id)


def visible(device: bytes) -> Availability:
    """Tell whether this process sees a GPU.

    Parameters
    ----------
    device : bytes
        UUID of the GPU, 16 bytes.
    """
    from cuda.bindings import driver as cuda

    name = f"GPU-{uuid.UUID(bytes=device)}"
    try:
        seen = _visible_devices(cuda)
    except (AvailabilityError, RuntimeError) as error:  # without libcuda a RuntimeError
        return Availability(available=False, reason=f"{name} is not visible here: {error}")
    if device in seen:
        return Availability(available=True)
    others = "1 other is" if len(seen) == 1 else f"{len(seen)} others are"
    return Availability(
        available=False,
        reason=f"{name} is not visible here, {others}: name it in CUDA_VISIBLE_DEVICES too",
    )


def _visible_devices(cuda: object) -> set[bytes]:
    def call(function: str, *arguments: object) -> object:
        error, *values = getattr(cuda, function)(*arguments)
        if int(error) != 0:
            raise AvailabilityError(f"{function} answered {error.name}")
        return values[0] if values else None

    call("cuInit", 0)
    count = call("cuDeviceGetCount")
    assert isinstance(count, int)
    found = set()
    for ordinal in range(count):
        unique = call("cuDeviceGetUuid", call("cuDeviceGet", ordinal))
        found.add(bytes(unique.bytes))  # type: ignore[attr-defined]
    return found
