# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Neighbours on real GPUs: who is one, what links carry, how busy a GPU is."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import cupy
import pytest

import rmm_uvm
from rmm_uvm._lib.cuda import Nvml
from rmm_uvm._lib.limits import process_account
from rmm_uvm._lib.links import measure_links
from rmm_uvm.doctor.links import Topology
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.errors import AvailabilityError

pytestmark = pytest.mark.gpu

COUNT = cupy.cuda.runtime.getDeviceCount()
MIB = 1 << 20
# Measured between two H200 with NVLink (2026-11-21): prefetches of 2 GiB. Rates with the host are
# the host's: 11 to 24 GB/s out on two of them.
BETWEEN_GPUS = 205e9
REGION_BYTES = 256 * MIB

two_gpus = pytest.mark.skipif(COUNT < 2, reason="needs two GPUs")


def is_h200() -> bool:
    return b"H200" in cupy.cuda.runtime.getDeviceProperties(0)["name"]


def assert_near(rate: float, expected: float) -> None:
    """Check a rate to a factor of 2: pieces are smaller here, and one thread moves them."""
    assert expected / 2 < rate < expected * 2, f"{rate / 1e9:.1f} GB/s, not {expected / 1e9:.0f}"


@pytest.fixture(scope="module")
def measured(gpu: CudaDriver) -> Topology:
    return rmm_uvm.topology(measure=True)


def test_topology_lists_every_gpu_and_each_two_once(measured: Topology) -> None:
    assert [device.index for device in measured.devices] == list(range(COUNT))
    assert len(measured.pairs) == COUNT * (COUNT - 1) // 2
    for device in measured.devices:
        assert device.free_bytes is None or 0 < device.free_bytes <= device.total_bytes
    if COUNT == 1:
        assert measured.reason.startswith("there is one device only")


def test_topology_every_gap_has_a_reason(measured: Topology) -> None:
    for device in measured.devices:
        assert (device.host_rates is None) == bool(device.host_rates_reason)
    for pair in measured.pairs:
        assert (pair.rates is None) == bool(pair.rates_reason)
        assert bool(pair.peer_access) == (pair.peer_access.reason == "")


def prefetched(ordinal: int, place: str, rounds: int = 5) -> float:
    """Return the rate at which prefetches of a whole region move it there: the median."""
    driver = rmm_uvm.cuda_driver(ordinal)
    mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
    address = int(mr.allocate(REGION_BYTES))
    seconds = []
    with cupy.cuda.Device(ordinal) as device:
        driver.prefetch(address, REGION_BYTES, "device")
        cupy.cuda.runtime.memset(address, 1, REGION_BYTES)
        for _ in range(rounds):
            for where in ("host", "device"):
                device.synchronize()
                begin = time.perf_counter()
                driver.prefetch(address, REGION_BYTES, where)
                device.synchronize()
                if where == place:
                    seconds.append(time.perf_counter() - begin)
    mr.deallocate(address, REGION_BYTES)
    return REGION_BYTES / statistics.median(seconds)


def test_topology_rates_with_the_host_are_those_of_prefetches(measured: Topology) -> None:
    for device in measured.devices:
        assert device.host_rates is not None, device.host_rates_reason
        to_host, to_device = (prefetched(device.index, place) for place in ("host", "device"))
        assert_near(device.host_rates.to_host_bytes_per_second, to_host)
        assert_near(device.host_rates.to_device_bytes_per_second, to_device)


@two_gpus
@pytest.mark.skipif(not is_h200(), reason="figures of an H200")
def test_topology_rates_between_gpus_are_what_was_measured(measured: Topology) -> None:
    for pair in measured.pairs:
        if pair.link != "NVLink":
            continue
        assert pair.rates is not None, pair.rates_reason
        assert_near(pair.rates.to_first_bytes_per_second, BETWEEN_GPUS)
        assert_near(pair.rates.to_second_bytes_per_second, BETWEEN_GPUS)


@two_gpus
def test_topology_peers_as_the_runtime_tells(measured: Topology) -> None:
    for pair in measured.pairs:
        can = cupy.cuda.runtime.deviceCanAccessPeer
        both = can(pair.first, pair.second) and can(pair.second, pair.first)
        assert bool(pair.peer_access) == bool(both)


def test_measure_links_is_short_and_gives_everything_back(gpu: CudaDriver) -> None:
    account = process_account()
    used_bytes = account.used_bytes
    begin = time.perf_counter()
    measure_links(gpu, account)
    assert time.perf_counter() - begin < 0.5  # tens of milliseconds on an H200
    assert account.used_bytes == used_bytes


def test_measure_links_moves_count_as_our_own(gpu: CudaDriver) -> None:
    before, moved_before = gpu.command_totals(), gpu.migrated_bytes()
    measure_links(gpu, process_account())
    after, moved = gpu.command_totals(), gpu.migrated_bytes()
    if gpu.counters_available():
        ours = after["prefetched_to_host_bytes"] - before["prefetched_to_host_bytes"]
        assert moved[1] - moved_before[1] <= ours


def test_measure_links_under_a_full_cap_is_refused(
    gpu: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = process_account()
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", str(account.used_bytes + 4 * MIB))
    with pytest.raises(MemoryError, match="RMM_UVM_MANAGED_LIMIT"):
        measure_links(gpu, process_account())
    monkeypatch.undo()
    process_account()


def test_nvml_tells_how_busy_a_gpu_is(gpu: CudaDriver) -> None:
    try:
        kernels, memory = Nvml().utilization(gpu.info.uuid)
    except AvailabilityError as error:
        pytest.skip(str(error))  # MIG, or a container without NVML
    assert 0 <= kernels <= 1
    assert 0 <= memory <= 1


def test_nvml_tells_how_many_nvlinks_are_active(gpu: CudaDriver) -> None:
    try:
        links = Nvml().nvlink(gpu.info.uuid)
    except AvailabilityError as error:
        pytest.skip(str(error))
    assert 0 < links["active_links"] <= 36
    assert links["read_at_us"] > 0


@two_gpus
def test_nvlink_counts_what_is_moved_between_gpus(gpu: CudaDriver, measured: Topology) -> None:
    try:
        before = Nvml().nvlink(gpu.info.uuid)
    except AvailabilityError as error:
        pytest.skip(str(error))
    if 1 not in measured.neighbors(0):
        pytest.skip(measured.pair(0, 1).peer_access.reason)
    gpu.open_neighbor(1)
    measure_links(gpu, process_account(), 1)
    after = Nvml().nvlink(gpu.info.uuid)
    # Six rounds of 64 MiB each way; the unit is KiB.
    assert after["sent_bytes"] - before["sent_bytes"] >= 6 * 63 * MIB
    assert after["received_bytes"] - before["received_bytes"] >= 6 * 63 * MIB


@two_gpus
def test_neighbour_that_computes_has_a_load(gpu: CudaDriver) -> None:
    if not gpu.open_neighbor(1):
        pytest.skip("no peer access")
    try:
        Nvml().utilization(f"GPU-{rmm_uvm.topology().devices[1].uuid}")
    except AvailabilityError as error:
        pytest.skip(str(error))
    with cupy.cuda.Device(1):
        ones = cupy.ones((4096, 4096), dtype=cupy.float32)
        busy_until = time.monotonic() + 2.0  # two of NVML's longest sampling periods
        while time.monotonic() < busy_until:
            for _ in range(50):
                ones @ ones
            cupy.cuda.Device(1).synchronize()
        load = gpu.neighbor_load(1)
    assert load["kernel_fraction"] is not None
    assert load["kernel_fraction"] > 0.5


def test_doctor_links_prints_rates(measured: Topology) -> None:
    result = subprocess.run(
        [sys.executable, "-P", "-m", "rmm_uvm.cli", "doctor", "--links"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "GB/s at which managed memory migrates" in result.stdout
    assert "not measured" not in result.stdout
