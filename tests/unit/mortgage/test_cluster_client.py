# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The client's side of a run on a cluster: waiting, connecting, choosing, command-line usage."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")
pytest.importorskip("dask.dataframe")

from click.testing import CliRunner, Result
from distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker
from distributed.utils import offload
from hypothesis import given
from hypothesis import strategies as st

import rmm_uvm.dask
from rmm_uvm.cli.main import make_group
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm_mortgage.cluster.connect import existing_workers, local_workers, no_gpu_reason
from rmm_uvm_mortgage.cluster.device_size import default_worker_device
from rmm_uvm_mortgage.cluster.run import ClusterRun
from rmm_uvm_mortgage.cluster.training import _telling_line
from rmm_uvm_mortgage.cluster.waiting import completed, result_of
from rmm_uvm_mortgage.compare import combined_digest
from rmm_uvm_mortgage.fit import is_out_of_memory, says_out_of_memory
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.run import default_device_bytes

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", autouse=True)
def _started_once() -> None:
    """Start what Python and Dask start when they first need it and keep until the end."""
    resource_tracker.ensure_running()
    asyncio.run(offload(int))


@pytest.fixture
def client() -> Iterator[Client]:
    """A cluster without workers, in this process."""
    with Client(n_workers=0, processes=False, dashboard_address=None) as client:
        yield client


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=5), max_size=5))
def test_digest_of_digests_is_that_of_all(groups: list[list[int]]) -> None:
    def digest(values: list[int]) -> str:
        return f"{sum(values) % 2**64:016x}"

    together = [value for group in groups for value in group]
    assert combined_digest(map(digest, groups)) == digest(together)


# -- waiting ---------------------------------------------------------------------------------------


def test_waiting_without_workers_ends_with_one_line(client: Client) -> None:
    future = client.submit(int, "1")
    with pytest.raises(AvailabilityError, match="has had no worker for"):
        list(completed(client, [future], look_every_seconds=0.01, patience_seconds=0.1))


def test_waiting_for_futures_that_were_cancelled_ends_with_one_line(client: Client) -> None:
    future = client.submit(int, "1")
    future.cancel()
    with pytest.raises(AvailabilityError, match="the scheduler has forgotten the run"):
        list(completed(client, [future], look_every_seconds=0.01, patience_seconds=0.1))


def test_completed_futures_are_yielded_once_each() -> None:
    with Client(n_workers=1, processes=False, dashboard_address=None) as client:
        futures = client.map(int, range(5))
        assert sorted(result_of(each) for each in completed(client, futures)) == [0, 1, 2, 3, 4]


def future_that_raises(error: BaseException) -> Any:
    def result() -> None:
        raise error

    return SimpleNamespace(result=result)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            KilledWorker("etl-1", SimpleNamespace(address="tcp://a:1"), 3),  # type: ignore[arg-type]
            "4 workers died one after the other while running etl-1, the last at tcp://a:1",
        ),
        (asyncio.CancelledError(), "the scheduler has forgotten the run"),
        (
            RuntimeError("Error during deserialization of the task graph. This frequently\noccurs"),
            "the scheduler cannot load the tasks",
        ),
    ],
)
def test_what_dask_raises_becomes_one_line(error: BaseException, reason: str) -> None:
    with pytest.raises(AvailabilityError, match=reason) as raised:
        result_of(future_that_raises(error))
    assert len(str(raised.value).splitlines()) == 1


def test_error_of_a_task_is_raised_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="something else"):
        result_of(future_that_raises(RuntimeError("something else")))


# -- connecting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:1", "AvailabilityError: no scheduler answers at tcp://127.0.0.1:1: "),
        ("nonsense://x", "ConfigurationError: --scheduler nonsense://x: unknown address scheme"),
    ],
)
def test_scheduler_that_cannot_be_reached_is_one_line(address: str, said: str) -> None:
    # In a process of its own: Dask leaves the thread of a client that could not connect.
    program = f"""
from rmm_uvm.errors import UvmError
from rmm_uvm_mortgage.cluster.connect import existing_workers, local_workers, no_gpu_reason
try:
    with existing_workers({address!r}, connect_seconds=0.1):
        pass
except UvmError as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
    command = [sys.executable, "-P", "-c", program]
    (line,) = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("device_bytes", "pool_bytes", "settings"),
    [
        (64 << 20, None, {"simulated": 64 << 20, "monitor": False}),
        (None, 1 << 20, {"simulated": False, "monitor": False, "initial_pool_size": 1 << 20}),
    ],
)
def test_workers_are_started_as_asked_and_ended(
    monkeypatch: pytest.MonkeyPatch,
    device_bytes: int | None,
    pool_bytes: int | None,
    settings: dict[str, Any],
) -> None:
    asked: list[dict[str, Any]] = []

    def local_cluster(workers: int, **given: Any) -> LocalCluster:
        asked.append({"workers": workers, **given})
        return LocalCluster(n_workers=0, processes=False, dashboard_address=None)

    monkeypatch.setattr(rmm_uvm.dask, "local_cluster", local_cluster)
    with local_workers(3, device_bytes, pool_bytes) as client:
        assert client.status == "running"
    assert asked == [{"workers": 3, **settings}]
    assert client.status == "closed"


def test_existing_cluster_is_left_running(client: Client) -> None:
    address = client.cluster.scheduler_address
    with existing_workers(address) as ours:
        assert ours.scheduler.address == address
    assert client.scheduler_info(n_workers=-1)["workers"] == {}


# -- the run ---------------------------------------------------------------------------------------


def test_largest_training_set_is_not_searched_for_on_a_cluster(client: Client) -> None:
    with pytest.raises(ConfigurationError, match="--train-parts a number"):
        ClusterRun(client, PipelineConfig(Path("/data"), train_parts="max"))


def test_features_before_the_run_cannot_be_written(client: Client, tmp_path: Path) -> None:
    run = ClusterRun(client, PipelineConfig(Path("/data")))
    with pytest.raises(ConfigurationError, match="no features to write"):
        run.write_features(tmp_path / "features.arrow")
    assert list(tmp_path.iterdir()) == []


def test_exhausted_memory_is_told_from_a_lost_peer() -> None:
    lost = "XGBoostError('[histogram.h:197]:\\n- Ring Allreduce failed.')"
    full = "XGBoostError('[12:00] x.cc:1:\\n- Memory allocation error on worker 1: bad_alloc\\n')"
    assert not says_out_of_memory(lost)
    assert says_out_of_memory(full)
    assert _telling_line(full) == "Memory allocation error on worker 1: bad_alloc"
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(ValueError("out of memory"))


# -- the command -----------------------------------------------------------------------------------


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(make_group(), ["mortgage", *arguments])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--workers", "2", "--scheduler", "tcp://a:1"], "give one of them"),
        (["--workers", "2", "--compare"], "--compare cannot be used with --workers"),
        (["--scheduler", "tcp://a:1", "--compare"], "--compare cannot be used with --scheduler"),
        (["--workers", "2", "--memory", "cuda"], "--memory cannot be used with --workers"),
        (["--workers", "2", "--picture", "a.svg"], "--picture cannot be used with --workers"),
        (["--workers", "2", "--train-parts", "max"], "--train-parts max cannot be used"),
        (["--scheduler", "tcp://a:1", "--device-memory", "1GiB"], "--device-memory cannot be used"),
        (["--scheduler", "tcp://a:1", "--pool-size", "1GiB"], "--pool-size cannot be used"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_options_that_contradict_each_other_are_one_line_with_status_2(
    arguments: list[str], reason: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert reason in result.output.splitlines()[-1]


def test_device_memory_on_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from rmm_uvm_mortgage.cli import on_cluster

    monkeypatch.setattr(on_cluster, "simulated_because", lambda *_: "")
    result = invoke("--workers", "2", "--device-memory", "1GiB")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "Error: --device-memory is for simulated devices; add --engine pandas"
    ]


def test_cluster_without_dask_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    result = invoke("--workers", "2")
    assert result.exit_code == 1
    assert "pip install 'rmm-uvm[dask]' 'rmm-uvm-mortgage[cpu]'" in result.output.splitlines()[-1]


# -- simulated devices -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "workers", "files_each"),
    [(None, 1, 2), (None, 2, 1), (None, 3, 1), (1, 1, 2), (4, 1, 2), (4, 2, 1), (4, 16, 1)],
)
def test_simulated_device_has_room_for_the_files_that_its_worker_trains_on(
    mortgage_data: Path, parts: int | None, workers: int, files_each: int
) -> None:
    size_bytes, why = default_worker_device(mortgage_data, parts, workers)
    assert size_bytes == default_device_bytes(mortgage_data) * files_each
    assert why.startswith("the least for any data")  # that of the tests is small
    assert why.endswith(", 2 files each") == (files_each == 2)


class FakeNvml:
    available = Availability(available=True)

    def __init__(self, devices: int = 1) -> None:
        self._devices = devices

    def devices(self) -> tuple[tuple[str, str], ...]:
        return (("GPU-1", "H200"),) * self._devices


class NoNvml(FakeNvml):
    available = Availability(available=False, reason="no NVML")


@pytest.mark.parametrize(
    ("driver", "loaded", "nvml", "cudf", "reason"),
    [
        ("simulated:1GiB", True, FakeNvml(), True, "RMM_UVM_DRIVER is simulated:1GiB"),
        ("", False, FakeNvml(), True, "no libcuda"),
        ("", True, NoNvml(), True, "no NVML"),
        ("", True, FakeNvml(0), True, "NVML finds no GPU"),
        ("", True, FakeNvml(), False, "there is a GPU, but not cudf: pip install"),
        ("", True, FakeNvml(), True, ""),
    ],
)
def test_workers_have_no_gpu_for_a_reason(
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    loaded: bool,
    nvml: FakeNvml,
    cudf: bool,
    reason: str,
) -> None:
    from rmm_uvm._lib import cuda

    monkeypatch.setenv("RMM_UVM_DRIVER", driver)
    found = Availability(loaded, "" if loaded else "no libcuda")
    monkeypatch.setattr(cuda, "libcuda_available", lambda: found)
    monkeypatch.setattr(cuda, "Nvml", lambda: nvml)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if cudf else None)
    said = no_gpu_reason()
    assert said.startswith(reason)
    assert bool(said) == bool(reason)
