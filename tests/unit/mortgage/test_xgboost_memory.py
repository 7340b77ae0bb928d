# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What XGBoost takes by cudaMalloc, as numbers and on a simulated device."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import rmm_uvm
from rmm_uvm_mortgage.simulated_engine import XGBoostShadow
from rmm_uvm_mortgage.xgboost_memory import TrainingShape, training_shape

MIB = 1 << 20


def shape_of(rows: int) -> TrainingShape:
    return TrainingShape(rows, entries=28 * rows, row_stride=40, bins=1000, depth=8)


def test_shape_of_a_frame_counts_what_is_not_missing() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, -1.0, 2.0], "b": [5.0, -1.0, -1.0]})
    shape = training_shape(frame, depth=3)
    assert shape == TrainingShape(rows=3, entries=3, row_stride=2, bins=3, depth=3)


def test_matrix_is_eight_bytes_for_each_value_and_row() -> None:
    assert shape_of(1000).matrix_bytes == {
        "row offsets": 8 * 1001,
        "entries": 8 * 28_000,
        "labels": 4000,
    }


def test_bin_indices_take_as_many_bits_as_the_bins_need() -> None:
    # 1000 bins and one for missing values: 10 bits.
    assert shape_of(1000).training_bytes["bin indices"] == 1000 * 40 * 10 // 8


def test_histograms_grow_past_their_reserve_only_when_there_are_many_bins() -> None:
    few, many = shape_of(10), TrainingShape(10, 280, 40, bins=11_520, depth=8)
    assert few.training_bytes["histograms"] == 32 * MIB
    assert many.training_bytes["histograms"] == 255 * 11_520 * 16


def test_shape_scaled_keeps_values_for_each_row() -> None:
    assert shape_of(1000).scaled(3000) == shape_of(3000)


def test_matrix_on_a_full_device_evicts_managed_pages() -> None:
    device = rmm_uvm.simulated_device(64 * MIB)
    managed = rmm_uvm.mr.ManagedMemoryResource(device)
    address = managed.allocate(64 * MIB)
    device.touch(address, 64 * MIB, write=True)
    blocks = XGBoostShadow(device, lambda: None).make_matrix(shape_of(100_000))
    assert device.statistics()["evicted_bytes"] >= blocks.held_bytes
    managed.deallocate(address, 64 * MIB)


def test_training_frees_everything_and_notes_its_peak() -> None:
    device = rmm_uvm.simulated_device(128 * MIB)
    shadow, shape = XGBoostShadow(device, lambda: None), shape_of(100_000)
    shadow.begin("train")
    matrix = shadow.make_matrix(shape)
    shadow.train(shape)
    least_bytes = sum(shape.matrix_bytes.values()) + sum(shape.training_bytes.values())
    assert shadow.peak_bytes["train"] >= least_bytes
    matrix.free()
    assert device.statistics()["device_bytes"] == 0


def test_training_too_large_says_what_failed_and_leaves_nothing() -> None:
    device = rmm_uvm.simulated_device(64 * MIB)
    shadow, shape = XGBoostShadow(device, lambda: None), shape_of(200_000)
    matrix = shadow.make_matrix(shape)
    with pytest.raises(MemoryError, match=r"XGBoost's cudaMalloc of .* failed"):
        shadow.train(shape)
    assert device.statistics()["device_bytes"] >= matrix.held_bytes
    matrix.free()
    assert device.statistics()["device_bytes"] == 0
