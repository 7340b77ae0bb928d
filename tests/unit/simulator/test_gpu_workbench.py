# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The workbench of a GPU, over a simulated device and a stand-in for the CUDA driver library."""

from __future__ import annotations

import ctypes
from collections import Counter

import pytest

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError
from rmm_uvm.simulator.measuring import measure
from rmm_uvm.simulator.measuring.gpu import GpuWorkbench
from rmm_uvm.simulator.measuring.procedure import take_figures
from rmm_uvm.support.machine_profile import CONSTANTS

from .fake_cuda import CUresult, FakeCuda

MIB = 1 << 20
PAGE = 4096


def device(**features: bool) -> rmm_uvm.drivers.SimulatedDevice:
    return rmm_uvm.simulated_device("1GiB", backing=True, **features)


def test_workbench_gives_back_all_that_it_makes() -> None:
    cuda = FakeCuda()
    with GpuWorkbench(device(), 16 * MIB, cuda):
        made = Counter(cuda.live.values())
        assert made == {"stream": 2, "event": 2, "pinned": 2, "buffer": 2, "module": 1}
    assert cuda.live == {}


@pytest.mark.parametrize(
    "result", [CUresult.CUDA_ERROR_INVALID_VALUE, CUresult.CUDA_ERROR_OUT_OF_MEMORY]
)
@pytest.mark.parametrize(
    "failing",
    [
        "cuStreamCreate",
        "cuModuleLoadData",
        "cuModuleGetFunction",
        "cuMemHostAlloc",
        "cuMemAlloc",
        "cuEventCreate",
    ],
)
def test_workbench_that_cannot_be_made_leaves_nothing(failing: str, result: CUresult) -> None:
    cuda = FakeCuda(failing=failing, result=result)
    kind = MemoryError if result == CUresult.CUDA_ERROR_OUT_OF_MEMORY else DriverError
    with pytest.raises(kind, match=failing):
        GpuWorkbench(device(), 16 * MIB, cuda).__enter__()
    assert cuda.live == {}


def test_workbench_module_text_ends_as_the_library_expects() -> None:
    cuda = FakeCuda()
    with GpuWorkbench(device(), 16 * MIB, cuda):
        assert cuda.module_text.endswith(b"}\n\0")


@pytest.mark.parametrize(
    ("nbytes", "stride_bytes", "blocks"),
    [(2 * MIB, 2 * MIB, 1), (128 * MIB, 2 * MIB, 1), (MIB, 8, 512), (256 * MIB, 8, 1024)],
)
def test_touch_launches_a_thread_for_each_word_up_to_a_full_grid(
    nbytes: int, stride_bytes: int, blocks: int
) -> None:
    cuda = FakeCuda()
    with GpuWorkbench(device(), 16 * MIB, cuda) as bench:
        bench.touch(4096, nbytes, stride_bytes)
        bench.write(4096, nbytes)
    assert cuda.log[0] == ("add_one", (blocks, 1, 1, 256, 1, 1), (4096, nbytes, stride_bytes))
    assert cuda.log[1][0] == "store_one"
    assert cuda.log[1][2] == (4096, nbytes, 8)


def test_read_past_the_end_is_refused() -> None:
    cuda = FakeCuda()
    with GpuWorkbench(device(), 16 * MIB, cuda) as bench:
        with pytest.raises(ValueError, match="past the end"):
            bench.read(4096, 15 * MIB)
        bench.read(4096, 32 * MIB)
        assert bench.remote_read_seconds(16 * MIB) >= 0
        with pytest.raises(ValueError, match="the buffers have"):
            bench.copy_seconds(17 * MIB, "device")
    reads = [arguments for _, _, arguments in cuda.log]
    assert reads[0] == (4096, 32 * MIB)
    assert reads[1][0] > 1_000_000  # the device's address of pinned memory


def test_copies_go_between_pinned_and_device_memory_each_way() -> None:
    cuda = FakeCuda()
    with GpuWorkbench(device(), 16 * MIB, cuda) as bench:
        assert bench.copy_seconds(MIB, "device") == 2.5e-3
        assert bench.copy_seconds(MIB, "host") == 2.5e-3
        bench.duplex_seconds(MIB)
        bench.small_copy_seconds(PAGE, 3)
    to_device = ("cuMemcpyHtoDAsync", "buffer", "pinned")
    to_host = ("cuMemcpyDtoHAsync", "pinned", "buffer")
    copies = [(*to_device, MIB, "stream"), (*to_host, MIB, "stream")]
    assert cuda.log[:4] == copies * 2
    assert cuda.log[4] == ("spin", (1, 1, 1, 1, 1, 1), (20_000_000,))
    assert cuda.log[5:] == [(*to_device, PAGE, "stream")] * 3


def test_cpu_touch_writes_to_every_page() -> None:
    driver = device()
    with GpuWorkbench(driver, 16 * MIB, FakeCuda()) as bench:
        address = bench.allocate_managed(2 * MIB)
        bench.cpu_touch(address, 2 * MIB)
        memory = (ctypes.c_ubyte * (2 * MIB)).from_address(address)
        assert set(memory[::PAGE]) == {1}
        assert sum(memory) == 512
        bench.free_managed(address, 2 * MIB)
    assert driver.statistics()["managed_bytes"] == 0


def test_managed_memory_past_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1MiB")
    with GpuWorkbench(device(), 16 * MIB, FakeCuda()) as bench, pytest.raises(MemoryError):
        bench.allocate_managed(2 * MIB)


def test_figures_of_a_device_without_discard_lack_those() -> None:
    driver = device(discard=False)
    with GpuWorkbench(driver, 16 * MIB, FakeCuda()) as bench:
        figures = take_figures(bench, 256 * MIB, copy_bytes=16 * MIB, rounds=1)
    missing = {name for name, value in figures.to_dict().items() if value is None}
    assert missing == {
        *("discard", "discard_call", "discarded_to_host", "discarded_write"),
        *("discard_and_prefetch_on_device", "discard_and_prefetch_on_host"),
    }
    assert driver.statistics()["managed_bytes"] == 0


def test_measure_within_the_cap_returns_a_machine_and_frees_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "256MiB")
    driver, cuda, parts = device(), FakeCuda(), list[str]()
    measurement = measure(driver, name="mine", rounds=1, progress=parts.append, cuda=cuda)
    machine = measurement.machine
    assert str(machine) == "mine"
    assert machine.device_bytes == 1 << 30
    assert len(parts) == 4
    assert cuda.live == {}
    assert driver.statistics()["managed_bytes"] == 0
    plain = measurement.to_dict()
    assert list(plain["constants"]) == list(CONSTANTS)
    assert plain["figures"]["device_bytes"] == 1 << 30


def test_measure_of_a_failing_device_frees_everything() -> None:
    driver, cuda = device(), FakeCuda(failing="cuMemcpyDtoHAsync", result=CUresult(1))
    with pytest.raises(
        DriverError, match="cuMemcpyDtoHAsync failed while measuring: CUDA_ERROR_INV"
    ):
        measure(driver, cuda=cuda)
    assert cuda.live == {}


def test_measure_simulated_device_without_a_stand_in_is_refused() -> None:
    with pytest.raises(AvailabilityError, match="machine profile"):
        measure(device())


def test_measure_without_concurrent_managed_access_says_why() -> None:
    with pytest.raises(AvailabilityError, match="nothing can be measured on"):
        measure(device(concurrent_managed_access=False), cuda=FakeCuda())


def test_measure_where_device_memory_is_the_hosts_says_that_nothing_moves() -> None:
    with pytest.raises(AvailabilityError, match="its memory is the host's, so nothing can leave"):
        measure(device(integrated=True), cuda=FakeCuda())


def test_measure_on_a_small_device_says_what_is_short() -> None:
    with pytest.raises(AvailabilityError, match=r"measuring needs 1\.00 GiB of device memory"):
        measure(rmm_uvm.simulated_device("512MiB"), cuda=FakeCuda())


def test_measure_under_a_small_cap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "128MiB")
    with pytest.raises(AvailabilityError, match="RMM_UVM_MANAGED_LIMIT, there are 128"):
        measure(device(), cuda=FakeCuda())


def test_measure_under_an_impossible_name_measures_nothing() -> None:
    parts: list[str] = []
    with pytest.raises(ConfigurationError, match="machine name"):
        measure(device(), name="a/b", progress=parts.append, cuda=FakeCuda())
    assert parts == []
