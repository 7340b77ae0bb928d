# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device memory through NVML: with a fake, and with what there is on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from rmm_uvm._lib.cuda import Nvml
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.watch.sampling.nvml import GpuMemory, GpuProcess, gpu_memory


class FakeNvml:
    """Two devices, of which the second tells nothing but its name."""

    def devices(self) -> Any:
        return (("GPU-0", "fake GPU"), ("MIG-1", "fake part"))

    def memory(self, uuid: str) -> Any:
        if uuid != "GPU-0":
            raise AvailabilityError("nvmlDeviceGetMemoryInfo: Not Supported")
        return 30, 60, 100

    def processes(self, uuid: str) -> Any:
        if uuid != "GPU-0":
            raise AvailabilityError("nvmlDeviceGetComputeRunningProcesses: Not Supported")
        return ((9, None), (4, 20))


def test_gpu_memory_reads_every_device_and_leaves_out_what_is_not_told() -> None:
    nvml: Any = FakeNvml()
    assert gpu_memory(nvml) == (
        GpuMemory(0, "GPU-0", "fake GPU", 30, 60, 100, (GpuProcess(4, 20), GpuProcess(9, None))),
        GpuMemory(1, "MIG-1", "fake part", None, None, None, ()),
    )


def test_nvml_works_or_says_why_not() -> None:
    nvml = Nvml()
    assert nvml.available.available == (nvml.available.reason == "")
    if nvml.available:
        for device in gpu_memory(nvml):
            assert device.uuid.startswith(("GPU-", "MIG-"))
    else:
        questions: list[Any] = [nvml.memory, nvml.processes, nvml.pcie_bytes_per_second]
        questions += [nvml.utilization, nvml.nvlink]
        for ask in [*questions, nvml.memory_reader]:
            with pytest.raises(AvailabilityError) as raised:
                ask("GPU-0")
            assert str(raised.value) == nvml.available.reason
        with pytest.raises(AvailabilityError):
            gpu_memory(nvml)


def test_nvml_not_opened_says_so() -> None:
    with pytest.raises(AvailabilityError, match="not opened"):
        Nvml.__new__(Nvml).devices()
