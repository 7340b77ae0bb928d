# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on Dask workers: real processes, each with a pool on a simulated device."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")
pytest.importorskip("dask.dataframe")

import cloudpickle
import dask.config
from click.testing import CliRunner, Result
from distributed import Client, LocalCluster
from distributed.utils import offload

import rmm_uvm
from rmm_uvm.cli.main import make_group
from rmm_uvm.errors import ConfigurationError
from rmm_uvm_mortgage.cluster.run import ClusterRun
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.reference import Reference, make_reference
from rmm_uvm_mortgage.run import RunConfig, run
from rmm_uvm_mortgage.stage_clock import PipelineProgress

# Dask's and XGBoost's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

REPOSITORY = Path(__file__).resolve().parents[2]
DEVICE_BYTES = 128 << 20
ROUNDS = 5


@pytest.fixture(autouse=True, scope="module")
def _started_once() -> None:
    """Start what Python and Dask start when they first need it and keep until the end."""
    resource_tracker.ensure_running()
    asyncio.run(offload(int))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Worker processes inherit it."""
    monkeypatch.setenv("RMM_UVM_DRIVER", f"simulated:{DEVICE_BYTES}")
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # The sampling profiler of Dask's workers holds the frames of functions that it looks at, and
    # with them memory that these would have freed: peaks differ from run to run.
    # They take this process's settings, which Dask read before this, over their environment's.
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(loans_per_quarter=150, quarters=2, months=24, seed=7))
    return directory


@pytest.fixture(scope="module")
def reference(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return make_reference(data, tmp_path_factory.mktemp("reference") / "pandas.arrow")


@contextlib.contextmanager
def plain_cluster(workers: int = 2, **options: Any) -> Iterator[Client]:
    """Start workers that know nothing of this package."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", **options
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def cluster() -> Iterator[Client]:
    """Start two workers with pools."""
    with plain_cluster(preload=["rmm_uvm.dask"]) as client:
        yield client


def eventually(client: Client, function: Callable[[], Any], expected: dict[str, Any]) -> bool:
    """Return whether workers come to say what is expected: they let go when they get to it."""
    deadline_seconds = time.monotonic() + 20
    while client.run(function) != expected:
        if time.monotonic() > deadline_seconds:
            return False
        time.sleep(0.05)
    return True


def profiled() -> bool:
    return bool(dask.config.get("distributed.worker.profile.enabled"))


def slabs() -> tuple[int, int]:
    installed = rmm_uvm.current_installation().devices[0]
    return id(installed.managed_mr), installed.managed_mr.get_allocated_bytes()


def test_run_on_two_workers_gives_the_result_of_one_process(
    data: Path, reference: Reference, tmp_path: Path
) -> None:
    config = PipelineConfig(data, rounds=ROUNDS)
    alone = run(RunConfig(config, device_bytes=DEVICE_BYTES))
    told: list[PipelineProgress] = []
    with cluster() as client:
        pools_before = client.run(slabs)
        assert not any(client.run(profiled).values())  # or peaks differ from run to run
        with ClusterRun(client, config) as on_cluster:
            report = on_cluster.run(told.append)
            on_cluster.write_features(tmp_path / "features.arrow")
        assert eventually(client, slabs, pools_before)  # the same pools, nothing left in them

    assert report.out_of_memory is None
    assert report.lost_workers == ()
    assert report.feature_digest == reference.digest == alone.pipeline.feature_digest
    assert reference.describe("another", tmp_path / "features.arrow") == "equal to 1e-6"
    assert report.feature_rows == alone.pipeline.feature_rows
    assert report.label_fraction == pytest.approx(alone.pipeline.label_fraction)
    # Each part uses a worker's device as it uses that of a single process.
    peaks = {stage.name: stage.peak_bytes for stage in alone.stages}
    etl = [stage for stage in report.stages if stage.name not in ("prep", "train")]
    assert {stage.name: stage.peak_bytes for stage in etl} == {
        stage.name: peaks[stage.name] for stage in etl
    }
    assert [len(worker.parts) for worker in report.workers] == [1, 1]
    assert all(worker.xgboost_peak_bytes > 0 for worker in report.workers)
    # The same rows, summed in another order.
    assert (report.training_rows, report.training_workers) == (alone.pipeline.training_rows, 2)
    quality, expected = report.quality, alone.pipeline.quality
    assert quality is not None
    assert expected is not None
    assert quality.rows == expected.rows
    assert quality.auc == pytest.approx(expected.auc, abs=0.02)
    assert quality.log_loss == pytest.approx(expected.log_loss, abs=0.01)
    assert [(p.stage, p.part) for p in told if p.stage != "ETL"] == [
        ("prep", None),
        ("train", None),
    ]
    assert [p.part for p in told if p.stage == "ETL"] == [f"{n} of 2 parts" for n in range(3)]


def test_worker_killed_during_the_etl_costs_time_and_no_row(
    data: Path, reference: Reference
) -> None:
    with cluster() as client, ClusterRun(client, PipelineConfig(data, rounds=ROUNDS)) as on_cluster:
        victim = on_cluster.workers[0]

        def kill(progress: PipelineProgress) -> None:
            if progress.part == "1 of 2 parts":
                os.kill(victim.pid, signal.SIGKILL)

        report = on_cluster.run(kill)

    assert report.lost_workers == (victim.address,)
    assert report.feature_digest == reference.digest
    assert sorted(title for worker in report.workers for title in worker.parts) == [*report.parts]
    assert victim.address not in [worker.address for worker in report.workers if worker.parts]
    assert report.quality is not None


def test_memory_that_runs_out_on_a_worker_is_reported_with_its_name(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:16MiB")
    with plain_cluster() as client:
        # XGBoost's own cudaMalloc needs more than 32 MiB, whatever is evicted.
        client.run(rmm_uvm.reinitialize, "2MiB")
        with ClusterRun(client, PipelineConfig(data)) as on_cluster:
            trained = on_cluster.run()
        client.run(rmm_uvm.reinitialize, "2MiB", "2MiB")
        with ClusterRun(client, PipelineConfig(data)) as on_cluster:
            stopped = on_cluster.run()
            with pytest.raises(ConfigurationError, match="no features to write"):
                on_cluster.write_features(data / "features.arrow")

    assert trained.feature_digest is not None
    ended = trained.out_of_memory
    assert ended is not None
    assert (ended.stage, ended.part) == ("train", None)
    assert "XGBoost's cudaMalloc" in ended.message
    ended = stopped.out_of_memory
    assert ended is not None
    assert ended.worker in {"0", "1"}
    assert ended.part in stopped.parts
    assert ended.stage in [stage.name for stage in stopped.stages]
    assert "Maximum pool size exceeded" in ended.message
    assert stopped.feature_digest is None


# -- the command -----------------------------------------------------------------------------------


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(make_group(), ["mortgage", *map(str, arguments)])


def shape(line: str) -> str:
    """Return a line without its figures, their units and its spacing."""
    line = re.sub(r"(?<= )-(?= |$)", "#", line)  # in a table: no bytes
    line = re.sub(r"[\d.,]*\d", "#", line)
    return " ".join(re.sub(r"\b[KMG]iB\b", "B", line).split())


def test_reinitialize_by_client_run_is_all_that_an_existing_cluster_needs(data: Path) -> None:
    with plain_cluster() as client:
        address = client.scheduler.address
        options = ("--scheduler", address, "--train-parts", 0, "--data")
        without = invoke(*options, data)
        client.run(rmm_uvm.reinitialize, "32MiB")
        result = invoke(*options, data)
        on_gpus = invoke(*options, data, "--engine", "cudf")
        nowhere = invoke(*options, "/nowhere")
        assert len(client.run(rmm_uvm.current_installation)) == 2  # left running, pools and all

    assert without.exit_code == 1
    assert without.output.startswith("Error: worker 0 has no pool of rmm_uvm: start workers with")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("SIMULATED DEVICES: no GPU is used")
    assert f"why: the workers at {address} have simulated devices" in result.output
    assert "identical to plain pandas" in result.output
    assert on_gpus.exit_code == 1
    assert on_gpus.output.splitlines()[-1] == (
        "Error: --engine cudf needs GPUs, and those workers' are simulated"
    )
    assert nowhere.exit_code == 1
    assert nowhere.output.startswith("Error: worker 0 cannot read /nowhere, or finds no names.csv")


def test_command_with_workers_prints_the_documented_page(data: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("report.json", "features.arrow")]
    files = ("--json", paths[0], "--features", paths[1])
    result = invoke(
        "--workers", 2, "--engine", "pandas", "--data", data, "--rounds", ROUNDS, *files
    )

    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "SIMULATED DEVICES: no GPU is used"
    assert "identical to plain pandas" in result.output
    plain = json.loads(paths[0].read_text())
    assert [worker["name"] for worker in plain["workers"]] == ["0", "1"]
    assert plain["workers"][0]["capacity_bytes"] == DEVICE_BYTES
    assert paths[1].stat().st_size > 0
    # The document shows a run of the same command; figures differ, and nothing else may.
    document = (REPOSITORY / "docs/use/mortgage-on-a-cluster.md").read_text()
    shown = re.search(r"```text\n(.*?)```", document, re.S)
    assert shown is not None
    printed = {shape(line) for line in lines}
    documented = [line for line in shown[1].splitlines() if line]
    assert len(documented) > 18
    assert [
        line for line in documented if "each device" not in line and shape(line) not in printed
    ] == []


def test_command_that_a_terminal_interrupts_prints_no_traceback_of_its_workers(
    data: Path, tmp_path: Path
) -> None:
    words = ["mortgage", "--workers", "2", "--engine", "pandas", "--rounds", "1000000"]
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "rmm_uvm.cli", *words, "--data", str(data)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, as a terminal gives it
    )
    with command:
        end_seconds = time.monotonic() + 60
        while len(list(tmp_path.glob("dask-scratch-space*/worker-*/"))) < 2:
            assert command.poll() is None
            assert time.monotonic() < end_seconds
            time.sleep(0.05)
        os.killpg(command.pid, signal.SIGINT)
        _, said = command.communicate(timeout=60)
    assert command.returncode == 1
    assert "Aborted!" in said
    assert "Traceback" not in said


def test_command_at_a_scheduler_without_workers_says_so_in_one_line(data: Path) -> None:
    with plain_cluster(0) as client:
        address = client.scheduler.address
        result = invoke("--scheduler", address, "--data", data)

    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"Error: the scheduler at {address} has no workers: start some first"
    ]


def test_workers_in_one_process_are_refused(data: Path) -> None:
    with (
        rmm_uvm.reinitialize("8MiB"),
        plain_cluster(processes=False) as client,
        pytest.raises(ConfigurationError, match="several workers share a process"),
    ):
        ClusterRun(client, PipelineConfig(data)).__enter__()
