# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on Dask workers with GPUs: cuDF and XGBoost over the installed pools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

pytest.importorskip("cupy")
pytest.importorskip("cudf")
pytest.importorskip("dask_cuda")
pytest.importorskip("xgboost")

import cupy
import xgboost
from distributed import Client
from distributed.utils import offload

import rmm_uvm.dask
from rmm_uvm.mortgage.cluster.run import ClusterRun
from rmm_uvm.mortgage.generate import GeneratorConfig, generate
from rmm_uvm.mortgage.pipeline import PipelineConfig
from rmm_uvm.mortgage.reference import make_reference

# Dask's and XGBoost's own warnings are no business of these tests.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]


@pytest.fixture(autouse=True, scope="module")
def _started_once() -> None:
    """Start what Python, Dask and CUDA start when they first need it and keep until the end."""
    resource_tracker.ensure_running()
    asyncio.run(offload(int))
    # A model that was trained on GPUs has XGBoost open one where it is received.
    data = xgboost.DMatrix(cupy.ones((2, 1)), label=cupy.arange(2))
    xgboost.train({"device": "cuda"}, data, 1)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """One worker for each GPU, two at most: 8 GiB of managed memory in all."""
    workers = min(cupy.cuda.runtime.getDeviceCount(), 2)
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "4GiB")  # of each process
    with (
        rmm_uvm.dask.local_cluster(
            workers, simulated=False, initial_pool_size="1GiB", protocol="tcp"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_run_on_gpus_gives_the_features_of_plain_pandas(client: Client, tmp_path: Path) -> None:
    data = tmp_path / "data"
    generate(data, GeneratorConfig(loans_per_quarter=2000, quarters=2, months=36, seed=7))
    reference = make_reference(data, tmp_path / "pandas.arrow")
    with ClusterRun(client, PipelineConfig(data, rounds=10)) as on_cluster:
        report = on_cluster.run()
        on_cluster.write_features(tmp_path / "features.arrow")

    assert report.out_of_memory is None
    assert not report.simulated
    described = reference.describe(report.feature_digest, tmp_path / "features.arrow")
    assert described in ("identical", "equal to 1e-6")
    assert all(worker.peak_bytes > 0 for worker in report.workers if worker.parts)
    assert report.training_workers == len([worker for worker in report.workers if worker.parts])
    assert report.quality is not None
    assert report.quality.auc is not None
    assert report.quality.auc > 0.6


def test_pool_that_is_too_small_is_reported_with_its_worker(client: Client, tmp_path: Path) -> None:
    generate(tmp_path, GeneratorConfig(loans_per_quarter=500, quarters=1, months=36, seed=7))
    client.run(rmm_uvm.reinitialize, "2MiB", "2MiB")
    with ClusterRun(client, PipelineConfig(tmp_path, rounds=10)) as on_cluster:
        ended = on_cluster.run().out_of_memory

    assert ended is not None
    assert ended.part == "2000Q1"
    assert ended.worker in {worker.name for worker in on_cluster.workers}
