# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused on a worker and what is only remarked on; and reading it from dask-cuda's own."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import dask
import pytest
from dask_cuda.device_host_file import DeviceHostFile
from dask_cuda.plugins import CUDFSetup, RMMSetup
from distributed import WorkerPlugin

from rmm_uvm.dask.settings import WorkerSettings
from rmm_uvm.dask.worker.refusals import _RMM_OPTIONS, WorkerFacts, facts_of, refusals, remarks

pytestmark = pytest.mark.filterwarnings("default")


class FakeWorker:
    def __init__(self, data: Any = None, pending: Any = (), plugins: Any = ()) -> None:
        self.data = {} if data is None else data
        self.plugins = {str(number): each for number, each in enumerate(plugins)}
        self._pending_plugins = pending


def rmm_setup(**options: Any) -> RMMSetup:
    nothing = dict.fromkeys(inspect.signature(RMMSetup).parameters)
    return RMMSetup(**{**nothing, "async_alloc": False, "managed_memory": False, **options})


def facts(worker: FakeWorker, settings: WorkerSettings | None = None) -> WorkerFacts:
    return facts_of(worker, settings or WorkerSettings())


# --- judging -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({"rmm_options": ("--rmm-pool-size",)}, "--rmm-pool-size of dask-cuda would replace"),
        ({"ucx_pool_size": "1GB"}, "unset it, and use rmm-uvm.ipc-pool-size"),
        ({"ucx_multi_buffer": True}, "distributed-ucxx.multi-buffer is on"),
        ({"visible_devices": "0,0"}, "names 0 twice"),
    ],
)
def test_what_fights_the_pool_is_refused_in_one_line(found: dict[str, Any], reason: str) -> None:
    (line,) = refusals(WorkerFacts(**found))
    assert reason in line
    assert "\n" not in line


def test_several_reasons_are_all_told() -> None:
    assert len(refusals(WorkerFacts(("--rmm-async",), None, False, "1GB", True, ""))) == 4


def test_nothing_is_refused_or_remarked_on_by_default() -> None:
    assert refusals(WorkerFacts()) == remarks(WorkerFacts()) == []


def test_visible_devices_do_not_matter_to_a_simulated_one() -> None:
    hidden = WorkerFacts(visible_devices="")
    assert refusals(hidden)
    assert not refusals(dataclasses.replace(hidden, simulated=True))
    mig = WorkerFacts(visible_devices="MIG-41b3359c")
    assert remarks(mig)
    assert not remarks(dataclasses.replace(mig, simulated=True))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({"device_spill_bytes": 1 << 30}, "set device_memory_limit=0"),
        ({"cudf_spill": True}, "--enable-cudf-spill"),
    ],
)
def test_what_moves_data_twice_is_remarked_on(found: dict[str, Any], reason: str) -> None:
    (line,) = remarks(WorkerFacts(**found))
    assert reason in line
    assert not refusals(WorkerFacts(**found))


# --- reading -----------------------------------------------------------------------------------


def test_every_memory_option_of_dask_cuda_is_known() -> None:
    assert set(_RMM_OPTIONS) == set(vars(rmm_setup())) - {"logging"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ()),
        ({"initial_pool_size": "1GB"}, ("--rmm-pool-size",)),
        ({"maximum_pool_size": "1GB"}, ("--rmm-maximum-pool-size",)),
        ({"managed_memory": True}, ("--rmm-managed-memory",)),
        ({"async_alloc": True, "release_threshold": 1}, ("--rmm-async", "--rmm-release-threshold")),
        ({"log_directory": "/tmp"}, ("--rmm-log-directory",)),
        ({"track_allocations": True}, ("--rmm-track-allocations",)),
        ({"external_lib_list": ["torch"]}, ("--set-rmm-allocator-for-libs",)),
    ],
)
def test_memory_options_are_read_from_a_worker_that_starts_and_from_one_that_runs(
    options: dict[str, Any], expected: tuple[str, ...]
) -> None:
    plugin = rmm_setup(**options)
    assert facts(FakeWorker(pending=[plugin])).rmm_options == expected
    assert facts(FakeWorker(plugins=[plugin])).rmm_options == expected


def test_other_plugins_are_no_memory_options() -> None:
    assert facts(FakeWorker(pending=[WorkerPlugin()])) == facts(FakeWorker())


def test_device_spilling_is_read_from_the_workers_data(tmp_path: Any) -> None:
    spilling = DeviceHostFile(str(tmp_path), device_memory_limit=1 << 30, memory_limit=1 << 30)
    without = DeviceHostFile(str(tmp_path), device_memory_limit=None, memory_limit=1 << 30)
    assert facts(FakeWorker(spilling)).device_spill_bytes == 1 << 30
    assert facts(FakeWorker(without)).device_spill_bytes is None
    assert facts(FakeWorker({})).device_spill_bytes is None


@pytest.mark.parametrize("spill", [True, False])
def test_cudf_spilling_is_read_from_its_plugin(spill: bool) -> None:
    plugin = CUDFSetup(spill=spill, spill_stats=0)
    assert facts(FakeWorker(pending=[plugin])).cudf_spill is spill


@pytest.mark.parametrize(
    "key", ["distributed-ucxx.rmm.pool-size", "distributed.rmm.pool-size"], ids=["new", "old"]
)
def test_pool_of_ucx_is_read_from_either_key(key: str) -> None:
    with dask.config.set({key: "1GB"}):
        assert facts(FakeWorker()).ucx_pool_size == "1GB"
    assert facts(FakeWorker()).ucx_pool_size is None


def test_visible_devices_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert facts(FakeWorker()).visible_devices == "1,0"


def test_simulated_is_what_setting_or_environment_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not facts(FakeWorker()).simulated
    assert facts(FakeWorker(), WorkerSettings().changed({"driver": "simulated:64MiB"})).simulated
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    assert facts(FakeWorker()).simulated
    assert not facts(FakeWorker(), WorkerSettings().changed({"driver": "cuda"})).simulated
