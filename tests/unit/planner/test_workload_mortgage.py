# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A real program's workload: the mortgage ETL on a simulated device, its stages in the trace."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm.drivers import simulated_device
from rmm_uvm.planner.workload.events import ALLOCATE, FREE, TOUCH
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.trace import TraceWriter
from rmm_uvm_mortgage.etl import STAGES
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.memory import find_memory, simulated_chain
from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline
from rmm_uvm_mortgage.simulated_engine import SimulatedEngine

from ...fuzz.slow_workload import problem


class TracedStages:
    """Tells a trace of an engine's stages; a `StageObserver`."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer

    def begin(self, name: str) -> None:
        self._writer.stage_begin(name)

    def end(self, _: str) -> None:
        self._writer.stage_end()


@pytest.mark.parametrize("touches", [True, False])
def test_mortgage_is_a_workload_with_its_stages(tmp_path: Path, touches: bool) -> None:
    generate(tmp_path / "data", GeneratorConfig(loans_per_quarter=50), workers=1)
    device = simulated_device("64MiB")
    chain = simulated_chain(find_memory("managed"), device)
    engine = SimulatedEngine(chain)
    path = tmp_path / "mortgage.trace"
    with TraceWriter(path) as writer:
        writer.observe(chain.resource)
        if touches:
            writer.observe(device)
        engine.observers.append(TracedStages(writer))
        run_pipeline(PipelineConfig(tmp_path / "data", train_parts=0), engine)
    packed = tmp_path / "mortgage.trace.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))

    workload = load_workload(packed, strict=True)

    assert problem(workload) == ""
    assert workload.touches_assumed is not touches
    assert set(STAGES) <= set(workload.stages)
    kinds, stages = workload.events["kind"], workload.events["stage"]
    join = workload.stages.index("join_perf_acq_gdfs")
    for kind in (ALLOCATE, FREE, TOUCH):
        assert ((kinds == kind) & (stages == join)).any()
    assert workload.allocations == (kinds == ALLOCATE).sum() > 100
