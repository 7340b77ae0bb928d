# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plain values about a device."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
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


def test_info_tells_whose_memory_it_is_and_what_follows() -> None:
    usual = rmm_uvm.simulated_device("64MiB").info
    assert (usual.integrated, usual.numa_node, usual.host_page_tables) == (False, None, False)
    assert usual.oversubscribable
    assert rmm_uvm.simulated_device("64MiB", numa_node=0).info.numa_node == 0
    spark = rmm_uvm.simulated_device("64MiB", integrated=True, direct_migration=True).info
    assert spark.integrated
    assert spark.concurrent_managed_access
    assert spark.oversubscribable.reason == "its memory is the host's, so nothing can leave it"
    assert "nothing migrates" in spark.direct_migration.reason
    lacking = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False).info
    assert lacking.oversubscribable.reason == "the device has no concurrent managed access"


@pytest.mark.parametrize("node", [-1, 1024, True, "1", 1.0])
def test_number_of_no_node_is_refused(node: object) -> None:
    with pytest.raises(ConfigurationError, match="a node is 0 to 1023"):
        rmm_uvm.simulated_device("64MiB", numa_node=node)  # type: ignore[arg-type]


@pytest.mark.parametrize("beside", [{"neighbors": 1}, {"host_memory": "1GiB"}])
def test_integrated_device_has_no_other_memory(beside: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="the only memory of its machine"):
        rmm_uvm.simulated_device("64MiB", integrated=True, **beside)


def test_memory_of_an_integrated_device_stays_whoever_uses_it() -> None:
    device = rmm_uvm.simulated_device("64MiB", integrated=True)
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="32MiB")
    address = pool.allocate(8 << 20)
    device.touch(address, 8 << 20, write=True)
    device.cpu_touch(address, 8 << 20, write=True)
    device.prefetch(address, 8 << 20, where="host")
    assert device.resident_bytes(address, 8 << 20) == 8 << 20
    assert device.migrated_bytes() == (0, 0)


def test_info_cannot_be_changed() -> None:
    info = rmm_uvm.simulated_device("64MiB").info
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.total_bytes = 1
