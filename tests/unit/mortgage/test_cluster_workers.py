# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Looking at workers before any work is done: every obstacle is one line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")

import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm_mortgage.cluster.workers import (
    WorkerInfo,
    describe_worker,
    find_workers,
    nccl_problem,
)

DATA = Path("/data")
WORKER = WorkerInfo("tcp://a:1", "0", "host", 11, "H200", "GPU-1", 1 << 30, simulated=False)
SIMULATED = dataclasses.replace(WORKER, device_uuid="", simulated=True)
HERE = {"rmm-uvm": "0.1.0", "xgboost": "3.2.0", "xgboost-cpu": None}


def worker(number: int, base: WorkerInfo = WORKER, **changes: Any) -> WorkerInfo:
    own = {
        "address": f"tcp://a:{number}",
        "name": str(number),
        "pid": number,
        "device_uuid": f"GPU-{number}" if base.device_uuid else "",
    }
    return dataclasses.replace(base, **{**own, **changes})


class FakeClient:
    """Answers as a cluster of these workers would."""

    def __init__(self, *workers: WorkerInfo, nccl: str = "", **packages: dict[str, Any]) -> None:
        self.scheduler = SimpleNamespace(address="tcp://s:8786")
        self._workers = {each.address: each for each in workers}
        self._nccl = nccl
        self._packages = packages
        self.error: Exception | None = None

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1  # all of them
        return {"workers": self._workers}

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        assert set(packages) == set(HERE)
        found = {
            name: {"packages": self._packages.get(name, HERE)} for name in ("client", "scheduler")
        }
        theirs = {"packages": self._packages.get("workers", HERE)}
        return {**found, "workers": dict.fromkeys(self._workers, theirs)}

    def run(self, function: Any, *args: Any, **_: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        if function is nccl_problem:
            return dict.fromkeys(self._workers, self._nccl)
        assert function is describe_worker
        assert args == (DATA,)
        return self._workers


def find(client: FakeClient, *, trains: bool = True) -> tuple[WorkerInfo, ...]:
    return find_workers(client, DATA, trains=trains)  # type: ignore[arg-type]


def test_workers_that_can_work_are_returned_in_order_of_their_names() -> None:
    names = [found.name for found in find(FakeClient(worker(10), worker(9), worker(2)))]
    assert names == ["2", "9", "10"]


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (FakeClient(), "the scheduler at tcp://s:8786 has no workers"),
        (
            FakeClient(worker(1), workers={**HERE, "rmm-uvm": None}),
            "the worker at tcp://a:1 does not have rmm-uvm",
        ),
        (
            FakeClient(worker(1), scheduler={**HERE, "rmm-uvm": None}),
            "the scheduler does not have rmm-uvm",
        ),
        (
            FakeClient(worker(1), workers={**HERE, "rmm-uvm": "0.0.9"}),
            "the worker at tcp://a:1 has rmm-uvm 0.0.9, here is 0.1.0",
        ),
        (
            FakeClient(worker(1), scheduler={**HERE, "xgboost": None}),
            "the scheduler does not have xgboost",
        ),
        (FakeClient(worker(1, problems=("is lazy",))), "worker 1 is lazy"),
        (
            FakeClient(
                worker(1, problems=("is lazy", "is slow")), worker(2, problems=("is late",))
            ),
            r"worker 1 is lazy; it is slow \(1 more worker cannot work either\)",
        ),
        (FakeClient(worker(1), worker(2), nccl="lacks NCCL"), r"worker 1 lacks NCCL \(1 more"),
    ],
)
def test_obstacle_is_one_line(client: FakeClient, reason: str) -> None:
    with pytest.raises(AvailabilityError, match=reason) as raised:
        find(client)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (
            FakeClient(worker(1), worker(2, SIMULATED)),
            "some workers have GPUs and others simulated",
        ),
        (FakeClient(worker(1), worker(2, pid=1)), "several workers share a process"),
        (FakeClient(worker(1), worker(2, device_uuid="GPU-1")), "2 workers share the GPU GPU-1"),
    ],
)
def test_workers_that_do_not_go_together_are_refused(client: FakeClient, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        find(client)


def test_what_only_training_needs_is_not_asked_without_it() -> None:
    clients = [
        FakeClient(worker(1), worker(2, device_uuid="GPU-1"), nccl="lacks NCCL"),
        FakeClient(worker(1), workers={**HERE, "xgboost": None}),
    ]
    assert [len(find(client, trains=False)) for client in clients] == [2, 1]


@pytest.mark.parametrize("workers", [(worker(1),), (worker(1, SIMULATED), worker(2, SIMULATED))])
def test_one_gpu_and_simulated_devices_need_no_nccl(workers: tuple[WorkerInfo, ...]) -> None:
    assert len(find(FakeClient(*workers, nccl="lacks NCCL"))) == len(workers)


@pytest.mark.parametrize(
    "error",
    [
        Exception("ModuleNotFoundError(\"No module named 'rmm_uvm_mortgage.cluster'\")"),
        AttributeError("module has no attribute describe_worker"),
    ],
)
def test_workers_with_another_build_are_told_as_that(error: Exception) -> None:
    client = FakeClient(worker(1))
    client.error = error
    with pytest.raises(AvailabilityError, match="another build of rmm-uvm of the same version"):
        find(client)


def test_error_of_another_kind_is_not_explained_away() -> None:
    client = FakeClient(worker(1))
    client.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        find(client)


def test_installed_xgboost_for_cpus_cannot_train_on_gpus() -> None:
    import xgboost

    if xgboost.build_info().get("USE_CUDA"):
        assert "without CUDA" not in nccl_problem()
    else:
        assert nccl_problem() == "has an XGBoost without CUDA: pip install xgboost, not xgboost-cpu"


# -- what a worker says itself ---------------------------------------------------------------------


def describe(data: Path, *, own_pool: bool = True) -> WorkerInfo:
    asked = SimpleNamespace(address="tcp://a:1", name=7)
    return describe_worker(data, own_pool=own_pool, dask_worker=asked)


def test_worker_with_a_pool_describes_its_device(mortgage_data: Path) -> None:
    with rmm_uvm.reinitialize("8MiB", driver="simulated:64MiB", monitor=False):
        info = describe(mortgage_data)
    assert info.problems == ()
    assert (info.name, info.simulated, info.capacity_bytes) == ("7", True, 64 << 20)


def test_worker_without_a_pool_and_data_says_both() -> None:
    problems = describe(Path("/nowhere")).problems
    assert problems[0].startswith("has no pool of rmm_uvm: start workers with")
    assert problems[1].startswith("cannot read /nowhere")


def test_worker_whose_pool_was_replaced_says_so(mortgage_data: Path) -> None:
    with rmm_uvm.reinitialize("8MiB", driver="simulated:64MiB", monitor=False) as uvm:
        ours = rmm.mr.get_per_device_resource(0)
        rmm.mr.set_per_device_resource(0, uvm.devices[0].previous_mr)
        problems = describe(mortgage_data).problems
        rmm.mr.set_per_device_resource(0, ours)
    assert problems == ("has a pool of rmm_uvm that something else has replaced",)


def test_worker_without_any_device_says_so_when_no_pool_is_needed(
    mortgage_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmm_uvm import drivers
    from rmm_uvm.errors import DriverError

    def none() -> None:
        raise DriverError("no NVIDIA driver here")

    monkeypatch.setattr(drivers, "cuda_driver", none)
    assert describe(mortgage_data, own_pool=False).problems == (
        "has no GPU: no NVIDIA driver here",
    )
