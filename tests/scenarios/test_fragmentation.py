# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Free bytes suffice, a fixed cudaMalloc pool fails, managed memory completes."""

from __future__ import annotations

import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm_mortgage.fragmentation import run_fragmentation

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB


def test_fixed_pool_fails_though_enough_bytes_are_free() -> None:
    result = run_fragmentation("cuda-pool", DEVICE_BYTES)
    assert result.free_bytes == 32 * MIB
    assert result.piece_bytes == 4 * MIB
    assert result.piece_bytes < result.asked_bytes < result.free_bytes
    assert not result.completed
    assert "Maximum pool size exceeded" in result.error


def test_managed_pool_completes_and_moves_only_what_does_not_fit() -> None:
    result = run_fragmentation("managed", DEVICE_BYTES)
    assert result.completed
    assert result.error == ""
    assert (result.free_bytes, result.asked_bytes) == (32 * MIB, 12 * MIB)
    # Alive at once: 32 MiB of columns and the result, which is less than the device. What leaves
    # for the result's new slab is freed columns or kept ones, the driver cannot know which.
    assert 0 < result.device_to_host_bytes <= DEVICE_BYTES
    assert result.host_to_device_bytes <= result.device_to_host_bytes


def test_device_of_partial_blocks_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        run_fragmentation("managed", 3 * MIB)
