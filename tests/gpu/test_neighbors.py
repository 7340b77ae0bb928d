# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Idle memory of other GPUs: no byte is lost, limits hold, an owner has its memory back."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import cupy
import pytest

import rmm_uvm
from rmm_uvm import harvest
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.residency import Budget

from .free_memory import steady_free_bytes
from .test_residency import (
    BUDGET_BYTES,
    MIB,
    POOL_BYTES,
    REPOSITORY,
    TOLD_BYTES,
    random_program,
)

COUNT = cupy.cuda.runtime.getDeviceCount()
LIMIT_BYTES = 96 * MIB
OWNER_BYTES = 256 * MIB
LONGEST_SECONDS = 5.0

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(COUNT < 2, reason="needs two GPUs")]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch, gpu: CudaDriver) -> None:
    if not (access := gpu.open_neighbor(1)):
        pytest.skip(access.reason)
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPOSITORY)])
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "2GiB")


def pool(gpu: CudaDriver, budget: Budget) -> Any:
    return rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=budget,
    )


def arrays_of(mr: Any) -> Any:
    return importlib.import_module("benchmarks.common.gpu_arrays").GpuArrays(mr, passes=20)


def kept(mr: Any) -> dict[str, Any]:
    return dict(mr.managed_mr.residency.residency())


@pytest.mark.parametrize("board", [False, True])
@pytest.mark.parametrize("limit", [None, LIMIT_BYTES])
@pytest.mark.parametrize("ahead", [False, True])
def test_random_programs_with_neighbours_lose_no_byte_and_keep_limits(
    gpu: CudaDriver, tmp_path: Path, board: bool, limit: int | None, ahead: bool
) -> None:
    folder = str(tmp_path) if board else None
    mr = pool(
        gpu,
        Budget(BUDGET_BYTES, neighbors="auto", harvest_limit=limit, board=folder, ahead=ahead),
    )
    arrays = arrays_of(mr)
    for seed in range(3):
        random_program(arrays, seed, 200)
    assert arrays.finish() == 0
    found = kept(mr)
    assert found["failed_calls"] == 0
    assert found["peak_resident_bytes"] <= BUDGET_BYTES
    assert found["neighbor_bytes"] > 0
    assert found["from_neighbor_bytes"] > 0
    if limit is None:
        assert found["neighbor_bytes"] == found["evicted_bytes"]
    else:
        assert found["peak_harvested_bytes"] <= limit * (COUNT - 1)


def test_blocks_are_where_the_statistics_say(gpu: CudaDriver) -> None:
    other = rmm_uvm.cuda_driver(1)
    limit_bytes = 5 * TOLD_BYTES
    budget = Budget(
        BUDGET_BYTES, neighbors=[1], harvest_limit=limit_bytes, board=None, background=False
    )
    mr = pool(gpu, budget)
    arrays = arrays_of(mr)
    arrays.finish()
    free_bytes, to_host = steady_free_bytes(other), gpu.migrated_bytes()[1]
    held = [arrays.make(32 * MIB) for _ in range(POOL_BYTES // (32 * MIB))]
    assert arrays.finish() == 0
    found = kept(mr)
    assert found["harvested_bytes"] == limit_bytes == found["neighbor_bytes"]
    assert free_bytes - other.memory()[0] >= limit_bytes - TOLD_BYTES
    sent_bytes = found["evicted_bytes"] - found["neighbor_bytes"]
    assert sent_bytes > 0
    if gpu.counters_available():
        moved_bytes = gpu.migrated_bytes()[1] - to_host
        assert sent_bytes * 0.9 <= moved_bytes <= sent_bytes * 1.1
    for address in held:
        arrays.read(address)
    assert arrays.finish() == 0
    for address in held:
        arrays.free(address)


def test_without_neighbours_the_other_gpu_holds_nothing(gpu: CudaDriver) -> None:
    other = rmm_uvm.cuda_driver(1)
    mr = pool(gpu, Budget(BUDGET_BYTES, neighbors=None, background=False))
    arrays = arrays_of(mr)
    arrays.finish()
    free_bytes = steady_free_bytes(other)
    held = [arrays.make(32 * MIB) for _ in range(2 * BUDGET_BYTES // (32 * MIB))]
    assert arrays.finish() == 0
    assert kept(mr)["neighbor_bytes"] == 0
    assert free_bytes - other.memory()[0] < 32 * MIB  # contexts and the like
    for address in held:
        arrays.free(address)


def test_owner_in_another_process_has_all_its_memory_back(gpu: CudaDriver, tmp_path: Path) -> None:
    claims = importlib.import_module("benchmarks.neighbors.claims")
    with claims.OwnerProcess(str(tmp_path), OWNER_BYTES) as owner:
        mr = pool(gpu, Budget(BUDGET_BYTES, neighbors=[1], board=str(tmp_path)))
        arrays = arrays_of(mr)
        held = [arrays.make(32 * MIB) for _ in range(2 * BUDGET_BYTES // (32 * MIB))]
        assert arrays.finish() == 0
        mr.managed_mr.residency.flush()
        lent_bytes = kept(mr)["harvested_bytes"]
        assert 0 < lent_bytes <= OWNER_BYTES
        owner.begin_to_take()
        taken = owner.answer()
        assert taken["reclaims"] >= 1
        deadline = time.monotonic() + LONGEST_SECONDS
        while kept(mr)["harvested_bytes"] > claims.SPARE_BYTES and time.monotonic() < deadline:
            time.sleep(0.001)
        found = kept(mr)
        assert found["harvested_bytes"] <= claims.SPARE_BYTES
        assert found["given_back_bytes"] >= lent_bytes - claims.SPARE_BYTES
        for _ in range(2):
            for address in held:
                arrays.write(address)
        assert arrays.finish() == 0
        assert kept(mr)["harvested_bytes"] <= claims.SPARE_BYTES
        for address in held:
            arrays.free(address)


def test_owner_that_is_killed_leaves_a_board_without_its_offer(
    gpu: CudaDriver, tmp_path: Path
) -> None:
    claims = importlib.import_module("benchmarks.neighbors.claims")
    with claims.OwnerProcess(str(tmp_path), OWNER_BYTES) as owner:
        mr = pool(gpu, Budget(BUDGET_BYTES, neighbors=[1], board=str(tmp_path)))
        arrays = arrays_of(mr)
        held = [arrays.make(32 * MIB) for _ in range(2 * BUDGET_BYTES // (32 * MIB))]
        owner.kill()
        for address in held:
            arrays.read(address)
        assert arrays.finish() == 0
    view = harvest.read_board(tmp_path)
    assert all(not device.offers for device in view.devices if device.uuid != gpu.info.uuid)
    for address in held:
        arrays.free(address)
