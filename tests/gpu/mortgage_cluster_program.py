# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on a cluster, for `test_mortgage_cluster.py`: prints one line of JSON.

    python mortgage_cluster_program.py SCENARIO FOLDER

In a process of its own, since a model that was trained on GPUs makes XGBoost open one where it is
received, for good. One worker for each GPU, two at most, each with the cap that this process has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rmm_uvm.dask
from rmm_uvm_mortgage.cluster.run import ClusterRun
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.reference import make_reference

if TYPE_CHECKING:
    from distributed import Client


def compared(client: Client, folder: Path) -> dict[str, Any]:
    """Run the pipeline, and say how its features compare with those of plain pandas."""
    data = folder / "data"
    generate(data, GeneratorConfig(loans_per_quarter=2000, quarters=2, months=36, seed=7))
    reference = make_reference(data, folder / "pandas.arrow")
    with ClusterRun(client, PipelineConfig(data, rounds=10)) as on_cluster:
        report = on_cluster.run()
        on_cluster.write_features(folder / "features.arrow")
    busy = [worker for worker in report.workers if worker.parts]
    return {
        "out_of_memory": str(report.out_of_memory or ""),
        "simulated": report.simulated,
        "features": reference.describe(report.feature_digest, folder / "features.arrow"),
        "peak_bytes": [worker.peak_bytes for worker in busy],
        "training_workers": report.training_workers,
        "auc": report.quality.auc if report.quality else None,
    }


def too_small(client: Client, folder: Path) -> dict[str, Any]:
    """Run the pipeline in a pool of 2 MiB."""
    generate(folder, GeneratorConfig(loans_per_quarter=500, quarters=1, months=36, seed=7))
    client.run(rmm_uvm.reinitialize, "2MiB", "2MiB")
    with ClusterRun(client, PipelineConfig(folder, rounds=10)) as on_cluster:
        ended = on_cluster.run().out_of_memory
    return {
        "part": ended.part if ended else None,
        "worker": ended.worker if ended else None,
        "workers": [worker.name for worker in on_cluster.workers],
    }


SCENARIOS = {"compared": compared, "too small": too_small}


def main() -> None:
    import pynvml
    from distributed import Client

    pynvml.nvmlInit()
    workers = min(int(pynvml.nvmlDeviceGetCount()), 2)
    with (
        rmm_uvm.dask.local_cluster(
            workers, simulated=False, initial_pool_size="1GiB", protocol="tcp"
        ) as cluster,
        Client(cluster) as client,
    ):
        told = SCENARIOS[sys.argv[1]](client, Path(sys.argv[2]))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
