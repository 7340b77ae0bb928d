# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
r"""cuML and cuGraph past a budget: the answers of plain device memory, and what it took.

    RMM_UVM_MANAGED_LIMIT=12GiB python benchmarks/past_the_edge/libraries.py \
        --library cuml --json FILE

The work is done twice, each time in a process of its own: in a pool over cudaMalloc memory, and
past a budget of ours. That is a test of what comes out, and no comparison of speeds: its two sides
have unlike device memory. For those see `run.py`.

    cuml      PCA and k-means over eight cuDF frames (2.3 GB), a forest, and PCA of one array of
              1.4 GB, which is larger than the budget
    cugraph   PageRank of two graphs and breadth-first search of a third (2.5 GB)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import rmm

import rmm_uvm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

GIB = 1 << 30
Work: TypeAlias = Callable[[int], tuple[dict[str, Any], dict[str, Any]]]

LEVELS = ("resident_bytes", "peak_resident_bytes", "peak_overshoot_bytes", "budget_bytes")
TOTALS = (
    *("evicted_bytes", "eviction_calls", "dropped_bytes", "uncopied_bytes", "fetched_bytes"),
    *("fetched_ahead_bytes", "faulted_bytes", "found_bytes", "host_read_bytes", "failed_calls"),
)


class Clock:
    """Seconds since the last look, with all kernels done."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def seconds(self) -> float:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()
        began, self._began = self._began, time.perf_counter()
        return self._began - began


def cuml(rounds: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the seconds of each part, and the answers."""
    import cudf
    import cupy
    from cuml.cluster import KMeans
    from cuml.decomposition import PCA
    from cuml.ensemble import RandomForestClassifier

    frame_count, rows, columns, rows_of_one = 8, 3_000_000, 24, 15_000_000

    def frame(seed: int) -> Any:
        random = cupy.random.default_rng(seed)
        base = random.standard_normal((rows, 4), dtype=cupy.float32)
        mix = random.standard_normal((4, columns), dtype=cupy.float32)
        noise = random.standard_normal((rows, columns), dtype=cupy.float32)
        data = cupy.matmul(base, mix) + 0.1 * noise
        return cudf.DataFrame({f"c{n}": data[:, n].copy() for n in range(columns)})

    def pca(data: Any, **settings: Any) -> Any:
        fitted = PCA(n_components=4, svd_solver="full", output_type="numpy", **settings).fit(data)
        return np.asarray(fitted.explained_variance_)

    def inertia(data: Any) -> float:
        first = data.iloc[:8].to_pandas().to_numpy("f4")
        clusters = KMeans(n_clusters=8, init=first, n_init=1, max_iter=10, output_type="numpy")
        return float(clusters.fit(data).inertia_)

    seconds: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    clock = Clock()
    frames = [frame(seed) for seed in range(frame_count)]
    seconds["make"], seconds["rounds"] = clock.seconds(), []
    for number in range(rounds):
        found = [(pca(each), inertia(each)) for each in frames]
        answers[f"pca_{number}"] = np.stack([variances for variances, _ in found])
        answers[f"kmeans_{number}"] = np.array([inertia for _, inertia in found])
        seconds["rounds"].append(clock.seconds())
    data = frames[0].iloc[:1_000_000]
    labels = (data["c0"] + data["c1"] > 0).astype("int32")
    forest = RandomForestClassifier(n_estimators=8, max_depth=8, n_streams=1, random_state=0)
    forest.fit(data, labels)
    answers["forest"] = np.array([float(forest.score(data, labels))])
    seconds["forest"] = clock.seconds()
    random = cupy.random.default_rng(99)
    whole = random.standard_normal((rows_of_one, columns), dtype=cupy.float32)
    answers["whole"] = pca(whole, copy=False)
    seconds["whole"] = clock.seconds()
    return seconds, answers


def cugraph(rounds: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the seconds of each part, and the answers."""
    import cudf
    import cugraph
    import cupy

    vertices, edge_count, graph_count = 1 << 21, 60_000_000, 3

    def graph(seed: int, *, transposed: bool) -> Any:
        """Return a graph whose vertices are all reached: a ring, and edges to popular vertices."""
        random = cupy.random.default_rng(seed)
        ring = cupy.arange(vertices, dtype=cupy.int32)
        ends = []
        for power in (1.0, 2.0):
            drawn = random.random(edge_count, dtype=cupy.float32) ** power * vertices
            ends.append(cupy.minimum(drawn.astype(cupy.int32), vertices - 1))
        source = cupy.concatenate([ring, ends[0]])
        target = cupy.concatenate([(ring + 1) % vertices, ends[1]])
        edges = cudf.DataFrame({"source": source, "target": target})
        made = cugraph.Graph(directed=True)
        ends_of_edges = {"source": "source", "destination": "target"}
        made.from_cudf_edgelist(edges, renumber=False, store_transposed=transposed, **ends_of_edges)
        return made

    seconds: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    clock = Clock()
    # One way of storing for each algorithm, so that none turns a graph around.
    *ranked, searched = (graph(seed, transposed=seed < graph_count - 1) for seed in range(3))
    seconds["make"], seconds["rounds"] = clock.seconds(), []
    for number in range(rounds):
        for which, each in enumerate(ranked):
            ranks, _ = cugraph.pagerank(each, max_iter=50, tol=1e-6, fail_on_nonconvergence=False)
            ranks = ranks.sort_values("vertex")["pagerank"].to_numpy()
            answers[f"pagerank_{number}_{which}"] = ranks[:: vertices // 4096]
        found = cugraph.bfs(searched, start=0)
        answers[f"bfs_{number}"] = np.bincount(found["distance"].to_numpy().clip(-1, 1 << 20) + 1)
        seconds["rounds"].append(clock.seconds())
    return seconds, answers


WORK: dict[str, tuple[Work, dict[str, float]]] = {
    "cuml": (cuml, {"pca": 1e-3, "kmeans": 1e-2, "forest": 5e-3, "whole": 1e-3}),
    "cugraph": (cugraph, {"pagerank": 1e-2, "bfs": 0.0}),
}
"""Each with how far its answers may be from the others, of their size: sums have no fixed order."""


def in_plain_memory(work: Work, rounds: int, file: Path) -> None:
    """Work in a pool over cudaMalloc memory, and keep the answers in a file."""
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 4 * GIB, 16 * GIB)
    rmm.mr.set_current_device_resource(pool)
    seconds, answers = work(rounds)
    np.savez(file, seconds=json.dumps(seconds), **answers)


def past_the_budget(work: Work, rounds: int, budget: str) -> tuple[Any, Any, dict[str, Any]]:
    """Work with a budget; return seconds, answers, and what residency counted."""
    rmm_uvm.reinitialize(device_budget=budget, monitor=False)
    before = rmm_uvm.residency_statistics()
    seconds, answers = work(rounds)
    after = rmm_uvm.residency_statistics()
    counted = {name: getattr(after, name) - getattr(before, name) for name in TOTALS}
    return seconds, answers, counted | {name: getattr(after, name) for name in LEVELS}


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, float]:
    """Return the largest difference of each answer, as part of what was expected."""
    return {
        name: float(np.max(np.abs(found[name] - right) / np.maximum(np.abs(right), 1e-12)))
        for name, right in ((name, np.asarray(value, "f8")) for name, value in expected.items())
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--library", choices=WORK, required=True)
    parser.add_argument("--budget", default="1GiB")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    work, bounds = WORK[asked.library]
    if asked.plain is not None:
        in_plain_memory(work, asked.rounds, asked.plain)
        return 0
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plain.npz"
        command = [sys.executable, __file__, *sys.argv[1:], "--plain", str(file)]
        subprocess.run(command, check=True)
        with np.load(file) as kept:
            expected = {name: kept[name] for name in kept.files if name != "seconds"}
            plain_seconds = json.loads(str(kept["seconds"]))
    seconds, answers, statistics = past_the_budget(work, asked.rounds, asked.budget)
    apart = differences(answers, expected)
    verdicts = {
        name: harness.judged_at_most(value, bounds[name.partition("_")[0]])
        for name, value in apart.items()
    }
    results = {"library": asked.library, "budget": asked.budget, "seconds": seconds}
    results |= {"plain_seconds": plain_seconds, "statistics": statistics}
    harness.write_json(asked.json, "libraries", results | {"verdicts": verdicts})
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    sys.exit(main())
