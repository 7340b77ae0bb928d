# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What surrounds a run on a GPU, with an engine that allocates from the current resource.

The engine shadows cuDF on a simulated device; only RMM's notion of a current resource, which asks
the CUDA runtime for a device, is replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import rmm.mr

import rmm_uvm
from rmm_uvm_mortgage.gpu_run import gpu_reason, measure
from rmm_uvm_mortgage.memory import Chain, find_memory, simulated_chain
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.shadow.engine import ShadowEngine

DEVICE_BYTES = 64 << 20
BEFORE = object()


class CurrentResource:
    """RMM's current resource, and an allocator that always asks it."""

    def __init__(self) -> None:
        self.resource: Any = BEFORE

    def get(self) -> Any:
        return self.resource

    def set(self, resource: Any) -> None:
        self.resource = resource

    def allocate(self, nbytes: int) -> int:
        return int(self.resource.allocate(nbytes))

    def deallocate(self, address: int, nbytes: int) -> None:
        self.resource.deallocate(address, nbytes)


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> CurrentResource:
    current = CurrentResource()
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", current.get)
    monkeypatch.setattr(rmm.mr, "set_current_device_resource", current.set)
    return current


def chain_of(name: str, device_bytes: int = DEVICE_BYTES) -> Chain:
    return simulated_chain(find_memory(name), rmm_uvm.simulated_device(device_bytes))


def test_run_measures_what_the_engine_holds_and_puts_back_what_was_current(
    mortgage_data: Path, current: CurrentResource
) -> None:
    engine = ShadowEngine(current)
    peaks: list[int] = []
    report = measure(
        PipelineConfig(mortgage_data, train_parts=0),
        chain_of("managed"),
        engine,
        tear_down=False,
        progress=lambda _: peaks.append(engine.footprint.peak_bytes),
    )
    assert current.resource is BEFORE
    assert engine.observers == []
    assert report.peak_bytes == max(*peaks, engine.footprint.peak_bytes)
    assert not report.simulated
    assert report.timeline["position"] == "seconds"
    assert len(report.timeline["samples"]) >= 2 * len(report.stages)


def test_pool_torn_down_is_gone_before_prep(mortgage_data: Path, current: CurrentResource) -> None:
    chain = chain_of("cuda-pool")
    free_bytes: list[int] = []
    report = measure(
        PipelineConfig(mortgage_data, rounds=1),
        chain,
        ShadowEngine(current),
        tear_down=True,
        progress=lambda _: free_bytes.append(chain.driver.memory()[0]),
        sample_every_seconds=None,
    )
    names = [stage.name for stage in report.stages]
    assert names[-3:] == ["teardown_pool", "prep", "train"]
    assert free_bytes[-3] == 0
    assert free_bytes[-2] == DEVICE_BYTES
    assert report.stages[-2].peak_bytes > 0


def test_run_out_of_memory_is_reported_and_puts_back_what_was_current(
    mortgage_data: Path, current: CurrentResource
) -> None:
    report = measure(
        PipelineConfig(mortgage_data, train_parts=0),
        chain_of("cuda-pool", 4 << 20),
        ShadowEngine(current),
        tear_down=False,
        sample_every_seconds=None,
    )
    assert report.pipeline.out_of_memory is not None
    assert current.resource is BEFORE


def test_gpu_reason_with_a_simulated_driver_asked_for_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:1GiB")
    assert gpu_reason() == "RMM_UVM_DRIVER is simulated:1GiB"
