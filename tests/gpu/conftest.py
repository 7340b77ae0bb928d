# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""GPU tests: refuse to run with less free memory than the cap, and give every test small pools."""

from __future__ import annotations

import gc
import multiprocessing.resource_tracker
import os
from collections.abc import Iterator

import pytest

import rmm_uvm
from rmm_uvm._lib.cuda import libcuda_available
from rmm_uvm.drivers import CudaDriver

from .room import lacking

# The files import CuPy: without a GPU they are not even collected.
collect_ignore_glob = [] if libcuda_available() else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def resource_tracker() -> None:
    # It starts with the first process that is spawned, and its pipe stays open.
    multiprocessing.resource_tracker.ensure_running()


@pytest.fixture(scope="session")
def gpu() -> CudaDriver:
    driver = rmm_uvm.cuda_driver(0)
    if why := lacking(driver):
        pytest.exit(why, returncode=2)
    return driver


# Others may be at it: a test that needs two GPUs is no reason to leave out those of one.
# For the session, like `gpu`: within a test the cap is not in the environment, and what the first
# use of a GPU opens would count as left behind.
@pytest.fixture(scope="session")
def second_gpu(gpu: CudaDriver) -> CudaDriver:
    if gpu.device_count < 2:
        pytest.skip("needs two GPUs")
    driver = rmm_uvm.cuda_driver(1)
    if why := lacking(driver):
        pytest.skip(why)
    return driver


@pytest.fixture
def without_counters(monkeypatch: pytest.MonkeyPatch) -> CudaDriver:
    monkeypatch.setitem(os.environ, "RMM_UVM_COUNTERS", "off")
    return rmm_uvm.cuda_driver(0)


@pytest.fixture
def torch_gives_back(gpu: CudaDriver) -> Iterator[None]:
    """Give back what torch keeps, so that the next test has the cap for itself."""
    import torch

    yield
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
