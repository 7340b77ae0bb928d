# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Building the two pools."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory, host_memory
from rmm_uvm.pool.build import plan_for
from rmm_uvm.pool.sizing import PoolRequest
from rmm_uvm.residency import Budget

MIB = 1 << 20


def test_managed_pool_prefetches_its_first_slab_as_far_as_memory_is_free() -> None:
    device = rmm_uvm.simulated_device("512MiB")
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="500MiB", device_budget=None)
    # A sixteenth of a small device is left free, for whoever comes next.
    assert mr.statistics()["slab_prefetched_bytes"] == 480 * MIB
    assert device.statistics()["resident_bytes"] == 480 * MIB


def test_managed_pool_grows_to_its_maximum_then_raises() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="96MiB"
    )
    first = mr.allocate(60 * MIB)
    assert mr.upstream_mr.pool_size() > 8 * MIB
    with pytest.raises(MemoryError, match="Maximum pool size exceeded"):
        mr.allocate(60 * MIB)
    mr.deallocate(first, 60 * MIB)


def test_host_memory_that_cannot_be_told_is_asked_for_and_a_given_maximum_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(**_: object) -> None:
        raise AvailabilityError("no meminfo")

    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", unknown)
    with pytest.raises(AvailabilityError, match="no meminfo; give maximum_pool_size"):
        rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="64MiB"
    )


def test_managed_pool_installs_nothing() -> None:
    before = rmm.mr.get_per_device_resource(0)
    rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    assert rmm.mr.get_per_device_resource(0) is before


@pytest.mark.parametrize(
    "arguments",
    [
        {"initial_pool_size": 0},
        {"initial_pool_size": "8 parsecs"},
        {"maximum_pool_size": -1},
        {"prefetch": "maybe"},
        {"prefetch": None},
    ],
)
def test_managed_pool_with_unusable_argument_takes_no_memory(arguments: dict[str, Any]) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    with pytest.raises(ConfigurationError):
        rmm_uvm.managed_pool(driver=device, **arguments)
    assert device.statistics()["managed_bytes"] == 0


def test_managed_pool_whose_slab_is_refused_raises_memory_error() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    device.fail_call("allocate_managed", "out_of_memory")
    with pytest.raises(MemoryError, match="simulated device"):
        rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")


def test_ipc_pool_takes_its_memory_at_once_and_never_grows() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.ipc_pool("4MiB", driver=device)
    assert device.statistics()["device_bytes"] == 4 * MIB
    with pytest.raises(MemoryError):
        mr.allocate(5 * MIB)
    mr.deallocate(mr.allocate(4 * MIB), 4 * MIB)
    assert mr.pool_size() == 4 * MIB


@pytest.mark.parametrize("size", [0, -1, "65MiB", "none", 1.5, "120%"])
def test_ipc_pool_of_unusable_size_is_refused(size: Any) -> None:
    with pytest.raises(ConfigurationError, match="ipc_pool_size"):
        rmm_uvm.ipc_pool(size, driver="simulated:64MiB")


@pytest.mark.parametrize("size", [0.5, "0.5", "50%", "32MiB", 32 * MIB])
def test_ipc_pool_takes_a_size_of_every_kind(size: Any) -> None:
    assert rmm_uvm.ipc_pool(size, driver="simulated:64MiB").pool_size() == 32 * MIB


def test_plan_counts_memory_that_is_about_to_return() -> None:
    device = rmm_uvm.simulated_device("512MiB")
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="256MiB", device_budget=None)
    now = plan_for(device, PoolRequest()).initial_bytes
    later = plan_for(device, PoolRequest(), returning_bytes=256 * MIB).initial_bytes
    assert (now, later) == (128 * MIB, 256 * MIB)
    del mr


def test_pool_of_an_integrated_device_is_a_share_of_the_host_and_prefetches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = HostMemory(total_bytes=512 * MIB, available_bytes=200 * MIB)
    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", lambda **_: host)
    device = rmm_uvm.simulated_device("512MiB", integrated=True)
    sizes = plan_for(device, PoolRequest())
    assert (sizes.initial_bytes, sizes.maximum_bytes) == (100 * MIB, 180 * MIB)
    mr = rmm_uvm.managed_pool(driver=device)
    mr.allocate(50 * MIB)
    assert mr.statistics()["slab_prefetched_bytes"] == 0
    assert mr.statistics()["skipped"]["integrated"] == 2  # slab and allocation
    assert device.command_totals()["prefetched_to_device_bytes"] == 0


@pytest.mark.parametrize(
    ("limit_bytes", "maximum_bytes"), [(None, 270 * MIB), (250 * MIB, 224 * MIB)]
)
def test_plan_of_an_integrated_device_counts_host_memory_that_is_about_to_return(
    limit_bytes: int | None, maximum_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HostMemory(300 * MIB, 10 * MIB, limit_bytes, "/sys/memory.max" if limit_bytes else "")
    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", lambda **_: host)
    device = rmm_uvm.simulated_device("512MiB", integrated=True)
    sizes = plan_for(device, PoolRequest(), returning_bytes=400 * MIB)
    assert sizes.maximum_bytes == maximum_bytes
    assert plan_for(device, PoolRequest()).maximum_bytes == 8 * MIB


def test_sizes_leave_out_the_numa_node_that_cuda_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    mib = 1024
    write("proc/meminfo", f"MemTotal: {900 * mib} kB\nMemAvailable: {800 * mib} kB\n")
    for node, cpus in enumerate(("0-71", "")):
        write(f"sys/devices/system/node/node{node}/cpulist", f"{cpus}\n")
        write(
            f"sys/devices/system/node/node{node}/meminfo",
            f"Node {node} MemTotal: {400 * mib} kB\nNode {node} MemFree: {300 * mib} kB\n",
        )
    monkeypatch.setattr(
        "rmm_uvm.pool.build.host_memory",
        lambda device_nodes: host_memory(tmp_path, device_nodes=device_nodes),
    )
    request = PoolRequest()
    simulated = rmm_uvm.simulated_device("64MiB", numa_node=1)
    # The node of a model is none of the machine that it is simulated on.
    assert plan_for(simulated, request).maximum_bytes == 720 * MIB
    gpu: Any = SimpleNamespace(
        memory=simulated.memory, info=dataclasses.replace(simulated.info, simulated=False)
    )
    coherent = plan_for(gpu, request)
    assert coherent.maximum_bytes == 450 * MIB
    assert coherent.maximum_reason == "90 % of available host memory, without that of GPUs"


ONE_THREAD = Budget(248 << 20, follows=True, background=False)  # as "auto" is on 256 MiB


@pytest.mark.parametrize("buffer_mib", [64, 1])
@pytest.mark.parametrize("budget", [ONE_THREAD, "auto"], ids=["alone", "auto"])
def test_allocating_first_and_writing_later_moves_only_what_does_not_fit(
    budget: Any, buffer_mib: int
) -> None:
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget, maximum_pool_size="1GiB")
    nbytes = buffer_mib << 20
    buffers = [mr.allocate(nbytes) for _ in range((384 << 20) // nbytes)]
    assert device.migrated_bytes() == (0, 0)
    for address in buffers:
        device.touch(address, nbytes, write=True)
    came, left = device.migrated_bytes()
    assert came == 0
    assert 128 << 20 <= left <= 136 << 20  # the more the earlier the thread looks


@pytest.mark.parametrize(("buffers", "buffer_mib"), [(6, 64), (384, 1), (48, 8), (2, 200)])
def test_writing_at_once_takes_as_long_as_with_a_budget_under_which_nothing_waits(
    buffers: int, buffer_mib: int
) -> None:
    taken_ns = []
    nbytes = buffer_mib << 20
    for budget in (ONE_THREAD, dataclasses.replace(ONE_THREAD, follows=False)):
        device = rmm_uvm.simulated_device("256MiB")
        mr = rmm_uvm.managed_pool(driver=device, device_budget=budget, maximum_pool_size="1GiB")
        for _ in range(buffers):
            device.touch(mr.allocate(nbytes), nbytes, write=True)
        assert device.migrated_bytes() == (0, buffers * nbytes - (248 << 20))
        taken_ns.append(device.statistics()["modelled_ns"])
    waiting_ns, evicting_ns = taken_ns
    assert waiting_ns <= 1.01 * evicting_ns


def test_twin_that_fits_and_is_written_at_once_faults_on_one_page() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.managed_pool(driver=device, device_budget=ONE_THREAD, maximum_pool_size="1GiB")
    for _ in range(3):
        device.touch(mr.allocate(64 << 20), 64 << 20, write=True)
    assert device.migrated_bytes() == (0, 0)
    assert device.statistics()["gpu_faults"] == 1
