# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The largest training set that a memory holds."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import rmm_uvm
from rmm_uvm_mortgage import training_set
from rmm_uvm_mortgage.memory import find_memory, simulated_chain
from rmm_uvm_mortgage.simulated_engine import SimulatedEngine
from rmm_uvm_mortgage.training_set import largest_training_rows
from rmm_uvm_mortgage.xgboost_memory import TrainingShape

MIB = 1 << 20
SHAPE = TrainingShape(1000, entries=28_000, row_stride=40, bins=1000, depth=8)


def largest(memory: str, device_bytes: int, part_rows: int = 20_000) -> int:
    def fresh() -> SimulatedEngine:
        device = rmm_uvm.simulated_device(device_bytes)
        engine = SimulatedEngine(simulated_chain(find_memory(memory), device))
        if engine.chain.memory.hands_over:
            engine.tear_down_pool()
        return engine

    return largest_training_rows(fresh, SHAPE, part_rows)


def test_managed_memory_trains_on_more_than_cuda_malloc() -> None:
    assert largest("managed", 256 * MIB) > 1.05 * largest("cuda-pool", 256 * MIB)


def test_managed_limit_is_what_xgboost_takes() -> None:
    rows = largest("managed", 256 * MIB)
    shape = SHAPE.scaled(rows)
    taken = sum(shape.matrix_bytes.values()) + sum(shape.training_bytes.values())
    assert taken == pytest.approx(256 * MIB, rel=0.01)


def test_twice_the_device_trains_on_about_twice_as_much_or_more() -> None:
    assert largest("cuda", 256 * MIB) >= 1.9 * largest("cuda", 128 * MIB)


def test_many_small_parts_train_on_what_few_large_ones_do() -> None:
    few, many = (largest("managed", 256 * MIB, part_rows=rows) for rows in (20_000, 200))
    assert many == pytest.approx(few, rel=0.02)


def test_device_that_holds_more_ends_at_the_most_rows_of_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training_set, "MOST_ROWS", 5000)
    assert largest("managed", 256 * MIB) == 5000
