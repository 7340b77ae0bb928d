# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs past a budget, each run again and again on pools: what `loops.py` compares.

Each has ``run(budget)``, without a budget where everything fits. A run gives the seconds of an
iteration, a digest or losses of what was computed, and what was done to keep the budget.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

import rmm_uvm
from benchmarks.neighbors.consolidation_programs import PIECE_BYTES, Harvester, memory_bytes
from benchmarks.neighbors.graphs import Graph
from rmm_uvm.residency import Budget

MIB = 1 << 20
POOL_BYTES = 12 << 30
# Of a budget, for a simulated program.
_ASKED = ("ahead", "neighbors", "board", "in_place", "copy_beside", "multipath")


class Workload(Protocol):
    """A program, with data of its own."""

    peak_bytes: int

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Return ``seconds``, ``digest`` or ``losses``, and with a budget ``residency``."""


class Etl:
    """The mortgage ETL on cuDF."""

    def __init__(self, rows: int) -> None:
        from benchmarks.residency import mortgage
        from rmm_uvm_mortgage.data_cache import generated_data
        from rmm_uvm_mortgage.generate import GeneratorConfig

        data = generated_data(GeneratorConfig(performance_rows=rows))
        self._loop = mortgage.Loop(data, iterations=5)
        self.peak_bytes = int(self._loop.run(None)["peak_bytes"])

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Run the ETL five times; the first two are left out."""
        return self._loop.run(budget, self.peak_bytes)


class Training:
    """A training step of GPT-2."""

    STEPS = 6

    def __init__(self, driver: Any, fraction: float = 0.75) -> None:
        import torch

        from benchmarks.training import training_runs

        torch.cuda.init()
        self._clean = training_runs.clean
        self._trainer = training_runs.Trainer("gpt2", "fp32", fraction, driver)
        self.peak_bytes = int(self.run(None)["peak_bytes"])

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Train six steps; the first three are left out."""
        try:
            if budget is None:
                return self._trainer.train(self.STEPS)
            return self._trainer.on_managed_memory(budget, self.STEPS)
        finally:
            self._clean()


class GraphProgram:
    """One of the programs of `Graph` of `graphs.py`."""

    ITERATIONS = 5

    def __init__(self, driver: Any, parts: int, work: Callable[[Any], object]) -> None:
        self._driver, self._parts, self._work = driver, parts, work
        self.peak_bytes = int(self.run(None)["peak_bytes"])

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Run it five times over the same graph; the first two are left out."""
        mr = rmm_uvm.managed_pool(
            driver=self._driver,
            initial_pool_size=POOL_BYTES if budget is None else None,
            maximum_pool_size=POOL_BYTES,
            device_budget=budget,
        )
        graph = Graph(mr, self._parts)
        seconds = []
        for _ in range(self.ITERATIONS):
            graph.synchronize()
            begin = time.perf_counter()
            self._work(graph)
            graph.synchronize()
            seconds.append(time.perf_counter() - begin)
        row = {
            "seconds": statistics.median(seconds[2:]),
            "digest": graph.digest(),
            "peak_bytes": int(mr.peak_bytes),
        }
        kept = mr.managed_mr.residency.residency()
        graph.free()
        del graph, mr
        gc.collect()
        return row if kept is None else {**row, "residency": kept}


class UnevenPipeline:
    """Two stages of a model on two GPUs; the first is past its GPU's budget."""

    STEPS = 6

    def __init__(self) -> None:
        self.peak_bytes = int(self.run(None)["peak_bytes"])

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Train six steps; the first three are left out."""
        import torch

        import rmm_uvm.torch
        from benchmarks.neighbors.pipeline import Pipeline

        torch.cuda.init()
        try:
            torch.cuda.reset_peak_memory_stats(0)
            if budget is None:
                row = Pipeline(("cuda:0", "cuda:1")).train(self.STEPS)
            else:
                with rmm_uvm.torch.managed(0, device_budget=budget) as memory:
                    row = Pipeline(("cuda:0", "cuda:1")).train(self.STEPS)
                    row.update(memory.statistics())
            return {**row, "peak_bytes": torch.cuda.max_memory_allocated(0)}
        finally:
            gc.collect()
            torch.cuda.empty_cache()


class SimulatedProgram:
    """A program of `consolidation_programs.py` beside an owner who idles, in modelled time."""

    def __init__(self, kind: str, memory: str = "256MiB") -> None:
        self._kind, self._gpu_bytes = kind, memory_bytes(memory)
        self.peak_bytes = int(self._gpu_bytes * 1.5) // PIECE_BYTES * PIECE_BYTES

    def run(self, budget: Budget | None) -> dict[str, Any]:
        """Run five iterations; the first two are left out."""
        gpu_bytes = self._gpu_bytes if budget is not None else 2 * self.peak_bytes
        node = rmm_uvm.simulated_node(2, gpu_bytes)
        asked = {name: getattr(budget, name) for name in _ASKED if budget is not None}
        program = Harvester(node.devices[0], self._kind, self.peak_bytes, asked)
        for _ in program.begin():
            pass
        for _ in program.steps(5):
            pass
        kept = program.prefetcher.residency()
        return {"seconds": program.seconds(2), "digest": "", "residency": kept}


def gpu_workloads(driver: Any, rows: int, parts: int) -> dict[str, Callable[[], Workload]]:
    """Return what makes each program, by name; making one runs it once where it fits."""
    return {
        "etl": lambda: Etl(rows),
        "training": lambda: Training(driver),
        "page rank": lambda: GraphProgram(driver, parts, lambda graph: graph.page_rank(2)),
        "breadth first": lambda: GraphProgram(driver, parts, lambda g: g.breadth_first(1)),
        "pipeline": UnevenPipeline,
    }


def simulated_workloads() -> dict[str, Callable[[], Workload]]:
    """Return programs that show that the script runs."""
    kinds = ("page rank", "breadth first", "training")
    return {kind: (lambda kind=kind: SimulatedProgram(kind)) for kind in kinds}
