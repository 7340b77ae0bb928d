# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plain values about a device."""

from __future__ import annotations

import dataclasses

import pytest

import rmm_uvm
from rmm_uvm.machine.device_info import Availability


def test_availability_is_true_only_when_available() -> None:
    assert Availability(True)
    assert not Availability(False, "no driver")


def test_simulated_info_is_complete() -> None:
    info = rmm_uvm.simulated_device("64MiB", device=3).info
    assert info.device_id == 3
    assert info.name == "simulated device"
    assert info.uuid.startswith("GPU-73696d00-")  # no GPU has it
    assert info.total_bytes == 64 << 20
    assert info.driver_version == 13000
    assert info.simulated
    assert info.concurrent_managed_access == info.discard == Availability(True)


def test_missing_features_carry_their_reason() -> None:
    info = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False, discard=False).info
    assert not info.concurrent_managed_access
    assert "without concurrent managed access" in info.concurrent_managed_access.reason
    assert "without discard" in info.discard.reason


def test_info_cannot_be_changed() -> None:
    info = rmm_uvm.simulated_device("64MiB").info
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.total_bytes = 1
