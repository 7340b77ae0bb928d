# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker keeps during a run: an engine over the installed pool, and its measurements."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")
pytest.importorskip("distributed")

import pandas as pd

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.pool.installation import DeviceInstallation, Installation
from rmm_uvm_mortgage.cluster.console_log import output_logged
from rmm_uvm_mortgage.cluster.state import MortgageWorker, state
from rmm_uvm_mortgage.cluster.worker_engine import (
    CudfWorkerEngine,
    SimulatedWorkerEngine,
    WorkerEngine,
    worker_engine,
)
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.etl import STAGES, run_etl
from rmm_uvm_mortgage.files import Part, find_files, make_parts
from rmm_uvm_mortgage.prep import training_frames

DEVICE = "simulated:256MiB"


@pytest.fixture
def installed() -> Iterator[DeviceInstallation]:
    with rmm_uvm.reinitialize("16MiB", driver=DEVICE, libraries=(), monitor=False) as uvm:
        yield uvm.devices[0]


@pytest.fixture
def part(mortgage_data: Path) -> Part:
    files = find_files(mortgage_data)
    return make_parts(files, load_domains(files))[0]


def worker_of(plugin: MortgageWorker) -> Any:
    worker = SimpleNamespace(
        address="tcp://10.0.0.1:7", name="7", plugins={}, state=SimpleNamespace(tasks={})
    )
    plugin.setup(worker)
    worker.plugins[plugin.name] = plugin
    return worker


@pytest.fixture
def plugin() -> MortgageWorker:
    plugin = MortgageWorker("run")
    worker_of(plugin)
    return plugin


def features() -> pd.DataFrame:
    return pd.DataFrame({name: [1.0, 2.0, 3.0] * 100 for name in "abc"}, dtype="float32")


# -- the engine ------------------------------------------------------------------------------------


def test_engine_without_a_pool_is_refused_with_what_to_do() -> None:
    with pytest.raises(AvailabilityError, match="no pool of rmm_uvm: start workers with --preload"):
        worker_engine()


def test_engine_over_a_simulated_pool_allocates_from_it(
    installed: DeviceInstallation, part: Part
) -> None:
    engine = worker_engine()
    assert isinstance(engine, SimulatedWorkerEngine)
    installed.managed_mr.reset_peak()
    table = run_etl(engine.engine, part)
    assert table.num_rows > 0
    assert installed.managed_mr.peak_bytes > part.performance.size_bytes
    assert engine.footprint.now_bytes == installed.managed_mr.get_allocated_bytes()


def test_partition_keeps_device_memory_as_long_as_its_values_live(
    installed: DeviceInstallation, part: Part
) -> None:
    engine = SimulatedWorkerEngine(installed)
    table = run_etl(engine.engine, part)
    gc.collect()
    before_bytes = installed.managed_mr.get_allocated_bytes()
    held = [engine.partition(frame) for frame in training_frames(engine.engine, [table])]
    gc.collect()
    assert [len(frame) for frame in held] == [table.num_rows] * 2
    expected_bytes = table.num_rows * 4 * 46  # 45 features and the label
    assert installed.managed_mr.get_allocated_bytes() == before_bytes + expected_bytes
    del held
    gc.collect()
    assert installed.managed_mr.get_allocated_bytes() == before_bytes


def test_training_memory_is_taken_past_the_pool_and_freed(installed: DeviceInstallation) -> None:
    engine = SimulatedWorkerEngine(installed)
    free_bytes, _ = installed.managed_mr.driver.memory()
    with engine.engine.stage("train"):
        engine.take_training_memory(features())
    assert installed.managed_mr.driver.memory()[0] < free_bytes
    assert engine.xgboost_peak_bytes()["train"] > 0
    assert engine.xgboost_peak_bytes() == {}  # each asks for its own
    engine.free_training_memory()
    assert installed.managed_mr.driver.memory()[0] == free_bytes


def test_engine_on_a_gpu_leaves_frames_and_memory_to_cudf_and_xgboost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rmm_uvm_mortgage import engines
    from rmm_uvm_mortgage.shadow.stages import Footprint

    monkeypatch.setattr(engines, "make_engine", lambda name: SimpleNamespace(name=name))
    device = rmm_uvm.simulated_device("64MiB")
    engine = CudfWorkerEngine(device, Footprint())
    frame = object()
    assert engine.partition(frame) is frame
    engine.take_training_memory(frame)
    engine.free_training_memory()
    assert engine.xgboost_peak_bytes() == {}
    assert engine.counters.statistics() == {"host_to_device_bytes": 0, "device_to_host_bytes": 0}


# -- the plugin ------------------------------------------------------------------------------------


def test_part_is_measured_stage_by_stage(
    installed: DeviceInstallation, plugin: MortgageWorker, part: Part
) -> None:
    table, account = plugin.measure(lambda engine: run_etl(engine.engine, part), part.title)
    assert table is not None
    assert account.address == "tcp://10.0.0.1:7"
    assert [stage.name for stage in account.stages] == list(STAGES)
    assert all(stage.runs == 1 for stage in account.stages)
    assert max(stage.peak_bytes for stage in account.stages) > part.performance.size_bytes
    assert account.seconds >= sum(stage.wall_seconds for stage in account.stages)
    assert (account.out_of_memory, account.refused) == (None, None)
    again = plugin.measure(lambda engine: run_etl(engine.engine, part))[1]
    assert [s.peak_bytes for s in again.stages] == [s.peak_bytes for s in account.stages]


def test_work_that_runs_out_of_memory_is_an_account_of_where(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    def work(engine: WorkerEngine) -> None:
        with engine.engine.stage("join"):
            raise MemoryError("no room\nat all")

    result, account = plugin.measure(work, "2000Q1")
    assert result is None
    ended = account.out_of_memory
    assert ended is not None
    assert (ended.worker, ended.stage, ended.part) == ("7", "join", "2000Q1")
    assert ended.message == "no room"
    assert [stage.name for stage in account.stages] == ["join"]


def test_work_that_is_refused_is_an_account_of_why(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    def work(engine: WorkerEngine) -> None:
        raise DataError("a file is broken")

    result, account = plugin.measure(work)
    assert result is None
    assert str(account.refused) == "a file is broken"


def test_work_on_a_worker_without_a_pool_is_refused_by_name(plugin: MortgageWorker) -> None:
    _, account = plugin.measure(lambda _: None)
    assert str(account.refused).startswith("worker 7 has no pool of rmm_uvm")


def test_work_that_fails_otherwise_raises(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    def work(engine: WorkerEngine) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        plugin.measure(work)
    assert plugin.measure(lambda _: "next")[0] == "next"


def test_two_threads_do_not_work_on_the_device_at_once(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    first_is_in, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def first(_: WorkerEngine) -> None:
        first_is_in.set()
        assert go_on.wait(30)
        order.append("first")

    threads = [
        threading.Thread(target=plugin.measure, args=(work,))
        for work in (first, lambda _: order.append("second"))
    ]
    threads[0].start()
    assert first_is_in.wait(30)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert order == ["first", "second"]


def test_training_is_one_stage_until_it_is_ended(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    free_bytes, _ = installed.managed_mr.driver.memory()
    assert plugin.begin_training(features()).out_of_memory is None
    assert plugin.begin_training(features()).out_of_memory is None  # another partition
    account = plugin.end_training()
    assert account is not None
    (stage,) = account.stages
    assert (stage.name, stage.runs) == ("train", 1)
    assert stage.xgboost_peak_bytes > 0
    assert installed.managed_mr.driver.memory()[0] == free_bytes
    assert plugin.end_training() is None


def test_training_without_room_is_reported_and_leaves_nothing() -> None:
    with rmm_uvm.reinitialize("2MiB", driver="simulated:16MiB", monitor=False, libraries=()) as uvm:
        plugin = MortgageWorker("run")
        worker_of(plugin)
        free_bytes, _ = uvm.managed_mr.driver.memory()
        ended = plugin.begin_training(features()).out_of_memory
        assert ended is not None
        assert (ended.worker, ended.stage) == ("7", "train")
        plugin.end_training()
        assert uvm.managed_mr.driver.memory()[0] >= free_bytes


def test_teardown_ends_a_training_that_goes_on(
    installed: DeviceInstallation, plugin: MortgageWorker
) -> None:
    free_bytes, _ = installed.managed_mr.driver.memory()
    before = sys.stdout
    plugin.begin_training(features())
    assert sys.stdout is not before
    plugin.teardown(None)
    assert sys.stdout is before
    assert installed.managed_mr.driver.memory()[0] == free_bytes


def test_errors_of_tasks_are_told_once() -> None:
    plugin = MortgageWorker("run")
    worker = worker_of(plugin)
    worker.state.tasks["fn"] = SimpleNamespace(exception_text="XGBoostError('out of memory')")
    plugin.transition("fn", "executing", "error", stimulus_id="x")
    plugin.transition("fn", "executing", "memory")
    plugin.transition("gone", "executing", "error")
    assert plugin.take_errors() == ["XGBoostError('out of memory')"]
    assert plugin.take_errors() == []


def test_state_of_a_run_that_has_ended_is_refused() -> None:
    plugin = MortgageWorker("run")
    worker = worker_of(plugin)
    assert state("run", worker) is plugin
    with pytest.raises(AvailabilityError, match="the run other of the mortgage pipeline has ended"):
        state("other", worker)


# -- around them -----------------------------------------------------------------------------------


def test_what_is_printed_while_training_goes_to_the_log_in_whole_lines(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO), output_logged():
        print("got", end=" ")
        print("rank 0\n")
        print("unfinished", end="")
    print("after")
    assert [record.message for record in caplog.records] == ["got rank 0"]
    assert capsys.readouterr().out == "after\n"


def test_tasks_can_be_imported_where_there_is_neither_rmm_nor_pandas() -> None:
    program = """
import sys
for name in ("rmm", "cudf", "pandas", "numpy", "pyarrow", "xgboost"):
    sys.modules[name] = None
import rmm_uvm_mortgage.cluster.tasks
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True)


def test_installation_is_seen_by_its_owner_only(installed: DeviceInstallation) -> None:
    current = rmm_uvm.current_installation()
    assert isinstance(current, Installation)
    engine = worker_engine()
    assert engine.counters is installed.managed_mr.driver
