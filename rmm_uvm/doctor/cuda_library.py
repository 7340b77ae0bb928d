# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Asks the CUDA driver library what it answers without a CUDA context.

NVIDIA's own Python bindings do the calls: they come with RMM, find the library themselves, and
need nothing compiled by us, so the doctor works where our extension cannot even be loaded.

Looking costs no device memory: attributes are asked of the driver, and free memory of NVML. The
library is initialised, though; a process that forks afterwards cannot use CUDA in its children.

References
----------
CUDA Driver API, sections "Device Management", "Peer Context Memory Access" and "Driver Entry Point
Access" (docs.nvidia.com/cuda/cuda-driver-api).
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from itertools import combinations, permutations
from typing import Any
from uuid import UUID

from rmm_uvm.doctor.facts import CudaFacts, DeviceFacts, PairFacts
from rmm_uvm.doctor.nvml_library import NvmlFacts, NvmlPart, read_nvml
from rmm_uvm.support.requirements import Version

__all__ = ["read_cuda"]

_DISCARD_FUNCTIONS = (b"cuMemDiscardBatchAsync", b"cuMemDiscardAndPrefetchBatchAsync")
# The CUDA version that introduced them, as cuGetProcAddress expects it.
_DISCARD_CUDA_VERSION = 13000


class _CallFailedError(Exception):
    """A driver call returned an error."""


class _NotFoundError(_CallFailedError):
    """The driver library, or a function of it, does not exist."""


def read_cuda(driver: Any = None, nvml: Any = None) -> CudaFacts:
    """Ask the CUDA driver library about itself and its devices.

    Parameters
    ----------
    driver, nvml : module, optional
        `cuda.bindings.driver` and `cuda.bindings.nvml`, or stand-ins for them; imported by
        default. Free memory stays unknown without NVML.

    Returns
    -------
    CudaFacts
        Without devices and with a reason if the library is missing or has none.
    """
    try:
        return _Library(driver or import_module("cuda.bindings.driver"), nvml).facts()
    except ImportError:
        return CudaFacts(reason="cuda-bindings is not installed; it comes with RMM")
    except _CallFailedError as error:
        return CudaFacts(reason=str(error))


class _Library:
    """The driver library behind its Python bindings."""

    def __init__(self, driver: Any, nvml: Any) -> None:
        self._driver = driver
        self._nvml = nvml
        self._success = driver.CUresult.CUDA_SUCCESS

    def facts(self) -> CudaFacts:
        """Return all that is known; a library without a device still tells its version."""
        version = self._version()
        try:
            self._call("cuInit", 0)
            devices = self._devices()
            told = read_nvml([device.uuid for device in devices], self._nvml)
        except _CallFailedError as error:
            return CudaFacts(reason=str(error) + _visibility(), cuda_version=version)
        return CudaFacts(
            reason="" if devices else "no CUDA device is visible" + _visibility(),
            cuda_version=version,
            devices=tuple(_completed(device, told) for device in devices),
            has_discard=all(map(self._has_function, _DISCARD_FUNCTIONS)),
            peers=self._peers([device.index for device in devices]),
            pairs=_pairs(devices, told),
        )

    def _version(self) -> Version:
        """Return the CUDA version of the library; needs no device and no initialisation."""
        try:
            number = self._call("cuDriverGetVersion")
        except _NotFoundError as error:
            # The first call loads the library, and no library lacks this function.
            raise _CallFailedError(
                "libcuda.so.1 was not found: NVIDIA's driver is not installed here"
            ) from error
        return (number // 1000, number % 1000 // 10)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a driver function and return its one result, if it has one."""
        try:
            status, *results = getattr(self._driver, name)(*arguments)
        except RuntimeError as error:
            # What the bindings raise without the library, or with one that lacks the function.
            raise _NotFoundError(f"the CUDA driver library has no {name}") from error
        if status != self._success:
            code = getattr(status, "name", str(status))
            raise _CallFailedError(f"the CUDA driver library refused {name}: {code}")
        return results[0] if results else None

    def _devices(self) -> tuple[DeviceFacts, ...]:
        return tuple(self._device(index) for index in range(self._call("cuDeviceGetCount")))

    def _device(self, index: int) -> DeviceFacts:
        handle = self._call("cuDeviceGet", index)
        attributes = self._driver.CUdevice_attribute

        def attribute(name: str) -> int:
            key = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self._call("cuDeviceGetAttribute", key, handle))

        def younger_attribute(name: str, otherwise: int = 0) -> int:
            try:
                return attribute(name)
            except _CallFailedError:  # the driver is older than the attribute
                return otherwise

        node = younger_attribute("NUMA_ID", otherwise=-1)
        uuid = str(UUID(bytes=bytes(self._call("cuDeviceGetUuid", handle).bytes)))
        return DeviceFacts(
            index=index,
            name=self._call("cuDeviceGetName", 256, handle).split(b"\0", 1)[0].decode(),
            uuid=uuid,
            compute_capability=(
                attribute("COMPUTE_CAPABILITY_MAJOR"),
                attribute("COMPUTE_CAPABILITY_MINOR"),
            ),
            total_bytes=int(self._call("cuDeviceTotalMem", handle)),
            free_bytes=None,
            managed_memory=bool(attribute("MANAGED_MEMORY")),
            concurrent_managed_access=bool(attribute("CONCURRENT_MANAGED_ACCESS")),
            pageable_memory_access=bool(attribute("PAGEABLE_MEMORY_ACCESS")),
            host_page_tables=bool(attribute("PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES")),
            integrated=bool(attribute("INTEGRATED")),
            numa_node=node if younger_attribute("NUMA_CONFIG") and node >= 0 else None,
            # The documented test for legacy IPC: CUDA Driver API, cuIpcGetMemHandle.
            legacy_ipc=bool(younger_attribute("IPC_EVENT_SUPPORTED")),
        )

    def _has_function(self, symbol: bytes) -> bool:
        try:
            address = self._call("cuGetProcAddress", symbol, _DISCARD_CUDA_VERSION, 0)
        except _CallFailedError:
            return False
        return bool(int(address))

    def _peers(self, devices: list[int]) -> frozenset[tuple[int, int]]:
        handles = {index: self._call("cuDeviceGet", index) for index in devices}
        return frozenset(
            (a, b)
            for a, b in permutations(devices, 2)
            if self._call("cuDeviceCanAccessPeer", handles[a], handles[b])
        )


def _completed(device: DeviceFacts, told: NvmlFacts) -> DeviceFacts:
    """Return a device with what NVML tells of it."""
    part = told.devices.get(device.uuid, NvmlPart())
    # CUDA's name of an instance has it too, where NVML is missing: "NVIDIA A100 MIG 1g.5gb".
    return replace(
        device,
        free_bytes=part.free_bytes,
        is_mig=part.is_mig or " MIG " in device.name,
        kernel_fraction=part.kernel_fraction,
    )


def _pairs(devices: tuple[DeviceFacts, ...], told: NvmlFacts) -> dict[tuple[int, int], PairFacts]:
    """Return what NVML tells of each two devices, by their CUDA ordinals."""
    return {
        (a.index, b.index): told.pairs[a.uuid, b.uuid]
        for a, b in combinations(devices, 2)
        if (a.uuid, b.uuid) in told.pairs
    }


def _visibility() -> str:
    """Return a note if the environment hides devices."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible!r})"
