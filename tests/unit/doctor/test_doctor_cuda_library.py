# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the doctor reads from the CUDA driver library, over stand-ins for NVIDIA's bindings."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rmm_uvm.doctor.cuda_library import read_cuda

GIB = 2**30


class FakeDriver:
    """Stands for `cuda.bindings.driver`: two devices, peers, everything supported.

    Parameters
    ----------
    failing : str
        Name of the function that fails.
    device_count : int
    """

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)

    def __init__(self, failing: str = "", device_count: int = 2) -> None:
        self._failing = failing
        self._results: dict[str, Any] = {
            "cuDriverGetVersion": lambda: 13020,
            "cuInit": lambda _flags: None,
            "cuDeviceGetCount": lambda: device_count,
            "cuDeviceGet": lambda index: index + 100,
            "cuDeviceGetName": lambda _length, _handle: b"NVIDIA H200\0\0\0",
            "cuDeviceGetUuid": lambda handle: SimpleNamespace(bytes=bytes([handle] * 16)),
            "cuDeviceTotalMem": lambda _handle: 139 * GIB,
            "cuDeviceGetAttribute": lambda name, _handle: self.attributes.get(name, 1),
            "cuDeviceCanAccessPeer": lambda a, b: int(a < b),
            "cuGetProcAddress": lambda _symbol, _version, _flags: 0x1000,
        }
        self.attributes: dict[str, int] = {}

    class CUdevice_attribute:  # noqa: N801 (NVIDIA's name)
        def __getattr__(self, name: str) -> str:
            return name.removeprefix("CU_DEVICE_ATTRIBUTE_")

    CUdevice_attribute = CUdevice_attribute()  # type: ignore[assignment,misc]

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            if name == self._failing:
                return (SimpleNamespace(name="CUDA_ERROR_UNKNOWN"),)
            result = self._results[name](*arguments)
            return (0,) if result is None else (0, result)

        return call


class FakeNvml:
    """Stands for `cuda.bindings.nvml`, and counts what was opened and closed."""

    def __init__(self) -> None:
        self.opened = 0

    def init_v2(self) -> None:
        self.opened += 1

    def shutdown(self) -> None:
        self.opened -= 1

    def device_get_handle_by_uuid(self, uuid: str) -> str:
        if uuid.startswith(("GPU-65", "MIG-65")):
            raise LookupError(uuid)
        return uuid

    def device_get_memory_info_v2(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(free=7 * GIB)


def test_read_cuda_two_devices_gives_all_facts() -> None:
    driver, nvml = FakeDriver(), FakeNvml()
    driver.attributes = {"COMPUTE_CAPABILITY_MAJOR": 9, "PAGEABLE_MEMORY_ACCESS": 0, "NUMA_ID": 3}
    found = read_cuda(driver, nvml)
    assert found.reason == ""
    assert found.cuda_version == (13, 2)
    assert found.has_discard
    assert found.peers == {(0, 1)}
    first, second = found.devices
    assert first.name == "NVIDIA H200"
    assert first.compute_capability == (9, 1)
    assert first.concurrent_managed_access
    assert not first.pageable_memory_access
    assert (first.integrated, first.numa_node) == (True, 3)
    # NVML knows the first device (UUID 64...) and not the second, as with a slice of one.
    assert (first.free_bytes, second.free_bytes) == (7 * GIB, None)
    assert nvml.opened == 0


def test_read_cuda_mig_instance_is_known_by_its_name_without_nvml() -> None:
    driver = FakeDriver(device_count=1)
    driver._results["cuDeviceGetName"] = lambda _length, _handle: b"NVIDIA A100 MIG 1g.5gb\0"
    nvml = SimpleNamespace()  # a library without any of its functions
    (device,) = read_cuda(driver, nvml).devices
    assert device.is_mig
    assert device.free_bytes is None
    assert not read_cuda(FakeDriver(), nvml).devices[0].is_mig


def test_read_cuda_initialisation_fails_keeps_version_and_names_the_call() -> None:
    found = read_cuda(FakeDriver(failing="cuInit"), FakeNvml())
    assert found.reason.startswith("the CUDA driver library refused cuInit: CUDA_ERROR_UNKNOWN")
    assert found.cuda_version == (13, 2)
    assert found.devices == ()


@pytest.mark.parametrize(
    "failing",
    ["cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
     "cuDeviceGetUuid", "cuDeviceTotalMem", "cuDeviceGetAttribute", "cuDeviceCanAccessPeer"],
)  # fmt: skip
def test_read_cuda_any_failing_call_is_a_reason(failing: str) -> None:
    found = read_cuda(FakeDriver(failing=failing), FakeNvml())
    assert failing in found.reason
    assert found.devices == ()


def test_read_cuda_without_discard_functions_has_no_discard() -> None:
    found = read_cuda(FakeDriver(failing="cuGetProcAddress"), FakeNvml())
    assert not found.has_discard
    assert len(found.devices) == 2


def test_read_cuda_hidden_devices_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = read_cuda(FakeDriver(device_count=0), FakeNvml())
    assert found.reason == "no CUDA device is visible (CUDA_VISIBLE_DEVICES='')"


def test_read_cuda_library_missing_is_a_reason() -> None:
    class NoLibrary(FakeDriver):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("dlopen")

    assert "libcuda.so.1 was not found" in read_cuda(NoLibrary(), FakeNvml()).reason


def test_read_cuda_bindings_missing_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    assert "cuda-bindings is not installed" in read_cuda().reason


def test_read_cuda_function_missing_from_an_old_library_is_named() -> None:
    class OldLibrary(FakeDriver):
        def __getattr__(self, name: str) -> Any:
            if name == "cuDeviceGetUuid":
                raise RuntimeError("not found")
            return super().__getattr__(name)

    found = read_cuda(OldLibrary(), FakeNvml())
    assert found.reason == "the CUDA driver library has no cuDeviceGetUuid"
    assert found.cuda_version == (13, 2)


@pytest.mark.parametrize(
    "unknown", [("IPC_EVENT_SUPPORTED", "NUMA_CONFIG", "NUMA_ID"), ("NUMA_ID",)]
)
def test_read_cuda_attribute_that_an_old_driver_does_not_know_costs_no_device(
    unknown: tuple[str, ...],
) -> None:
    class OldDriver(FakeDriver):
        def cuDeviceGetAttribute(self, name: str, handle: int) -> tuple[Any, ...]:  # noqa: N802
            if name in unknown:
                return (SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE"), 0)
            return (0, 1)

    found = read_cuda(OldDriver(), FakeNvml())
    assert found.reason == ""
    assert [device.numa_node for device in found.devices] == [None, None]
    assert found.devices[0].integrated


def test_read_cuda_device_that_is_no_numa_node_has_none() -> None:
    driver = FakeDriver(device_count=1)
    driver.attributes = {"NUMA_CONFIG": 0, "NUMA_ID": -1, "INTEGRATED": 0}
    (device,) = read_cuda(driver, FakeNvml()).devices
    assert (device.integrated, device.numa_node) == (False, None)
