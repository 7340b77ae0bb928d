# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a driver counts: commands that it was given, and faults while somebody asks."""

from __future__ import annotations

import pytest

from rmm_uvm import drivers
from rmm_uvm._lib.driver import MemoryReader
from rmm_uvm.errors import DriverError
from rmm_uvm.mr import ManagedMemoryResource

MIB = 2**20


def test_command_totals_follow_what_was_asked() -> None:
    driver = drivers.simulated_device("64MiB")
    mr = ManagedMemoryResource(driver)
    address = mr.allocate(16 * MIB)
    before = driver.command_totals()
    driver.prefetch(address, 16 * MIB)
    driver.prefetch(address, 4 * MIB, "host")
    driver.discard(address, 2 * MIB)
    driver.discard_and_prefetch(address, 2 * MIB)
    after = driver.command_totals()
    assert {name: after[name] - before[name] for name in after} == {
        "prefetched_to_device_bytes": 16 * MIB,
        "prefetched_to_host_bytes": 4 * MIB,
        "discarded_bytes": 4 * MIB,
    }
    mr.deallocate(address, 16 * MIB)


def test_command_totals_leave_out_what_failed() -> None:
    driver = drivers.simulated_device("64MiB")
    before = driver.command_totals()
    with pytest.raises(DriverError):
        driver.prefetch(4096, 4096, "host")
    assert driver.command_totals() == before


def test_fault_counts_count_while_asked_for() -> None:
    driver = drivers.simulated_device("64MiB")
    mr = ManagedMemoryResource(driver, prefetch="never")
    address = mr.allocate(8 * MIB)
    driver.touch(address, 2 * MIB)
    assert driver.fault_counts() == (0, 0)
    assert driver.request_faults().available
    driver.touch(address + 2 * MIB, 2 * MIB)
    driver.cpu_touch(address + 2 * MIB, 2 * MIB)
    counted = driver.fault_counts()
    assert min(counted) > 0
    driver.release_faults()
    driver.touch(address + 4 * MIB, 2 * MIB)
    assert driver.fault_counts() == counted
    mr.deallocate(address, 8 * MIB)


def test_request_faults_without_counters_says_why() -> None:
    refused = drivers.simulated_device("64MiB", counters=False).request_faults()
    assert not refused
    assert "without counters" in refused.reason


def test_memory_reader_agrees_with_the_driver_or_tells_nothing() -> None:
    driver = drivers.simulated_device("64MiB")
    reader = driver.memory_reader()
    assert reader.read() == driver.memory()
    driver.fail_call("memory")
    assert reader.read() is None
    with pytest.raises(TypeError):
        MemoryReader()
