# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`rmm_uvm.sleep` and `rmm_uvm.wake`: all leaves the device, and comes back as it was."""

from __future__ import annotations

import ctypes
import dataclasses
import threading

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

MIB = 1 << 20
BUDGET = Budget(64 * MIB, background=False)


def make_pool(budget: Budget | None = BUDGET, device_mib: int = 128) -> UvmResourceAdaptor:
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(device_mib * MIB, backing=True),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


def filled(mr: UvmResourceAdaptor, mib: int, byte: int) -> rmm.DeviceBuffer:
    """Return a buffer that was written on the device."""
    buffer = rmm.DeviceBuffer(size=mib * MIB, mr=mr)
    rmm_uvm.touch(buffer, mr=mr)
    ctypes.memset(buffer.ptr, byte, buffer.size)
    rmm_uvm.prefetch(buffer, mr=mr)
    return buffer


def holds(buffer: rmm.DeviceBuffer, byte: int) -> bool:
    return ctypes.string_at(buffer.ptr, buffer.size) == bytes([byte]) * buffer.size


def on_device(mr: UvmResourceAdaptor, buffer: rmm.DeviceBuffer) -> int:
    return int(mr.driver.resident_bytes(buffer.ptr, buffer.size))


def test_what_sleeps_leaves_the_device_and_wake_brings_it_back_as_it_was() -> None:
    mr = make_pool()
    kept, more = filled(mr, 20, 7), filled(mr, 12, 9)
    assert rmm_uvm.sleep(mr).moved_bytes == 32 * MIB
    assert on_device(mr, kept) == on_device(mr, more) == 0
    assert rmm_uvm.residency_statistics(mr).resident_bytes == 0
    assert rmm_uvm.wake(mr) == 32 * MIB
    assert on_device(mr, kept) == 20 * MIB
    assert on_device(mr, more) == 12 * MIB
    assert rmm_uvm.wake(mr) == 0
    assert holds(kept, 7)
    assert holds(more, 9)


def test_dead_memory_goes_without_being_copied() -> None:
    mr = make_pool()
    kept = filled(mr, 8, 7)
    filled(mr, 24, 8)  # and free again
    _, left_bytes = mr.driver.migrated_bytes()
    assert rmm_uvm.sleep(mr).moved_bytes == 8 * MIB
    assert mr.driver.migrated_bytes()[1] == left_bytes + 8 * MIB
    assert holds(kept, 7)


def test_pinned_memory_sleeps_too_and_is_pinned_afterwards() -> None:
    mr = make_pool()
    kept = filled(mr, 8, 7)
    with rmm_uvm.pin(kept, mr=mr):
        assert rmm_uvm.sleep(mr).moved_bytes == 8 * MIB
        assert on_device(mr, kept) == 0
        assert rmm_uvm.wake(mr) == 8 * MIB
        assert rmm_uvm.evict(kept, mr=mr).moved_bytes == 0
    assert rmm_uvm.evict(kept, mr=mr).moved_bytes == 8 * MIB


def test_what_was_away_before_stays_away() -> None:
    mr = make_pool()
    away, there = filled(mr, 8, 7), filled(mr, 4, 9)
    rmm_uvm.evict(away, mr=mr)
    assert rmm_uvm.sleep(mr).moved_bytes == 4 * MIB
    assert rmm_uvm.wake(mr) == 4 * MIB
    assert on_device(mr, away) == 0
    assert on_device(mr, there) == 4 * MIB


def test_a_smaller_budget_gets_what_was_used_last() -> None:
    mr = make_pool()
    first, second, third = (filled(mr, 16, byte) for byte in (1, 2, 3))
    rmm_uvm.evict(second, mr=mr)  # so that not all is there, and a use is learnt
    rmm_uvm.touch(second, mr=mr)
    rmm_uvm.touch(first, mr=mr)
    assert rmm_uvm.sleep(mr).moved_bytes == 48 * MIB
    mr.set_budget(32 * MIB)
    assert rmm_uvm.wake(mr) == 32 * MIB
    assert [on_device(mr, each) >> 20 for each in (first, second, third)] == [16, 16, 0]
    assert holds(third, 3)


def test_only_what_is_used_comes_back_while_asleep() -> None:
    mr = make_pool(dataclasses.replace(BUDGET, ahead=True))
    buffers = [filled(mr, 16, number) for number in range(6)]  # 96 of 64
    for _ in range(6):
        for each in buffers:
            rmm_uvm.touch(each, mr=mr)
            mr.managed_mr.residency.run_pending()
    foreseen = rmm_uvm.residency_statistics(mr)
    assert foreseen.foresees
    rmm_uvm.sleep(mr)
    rmm_uvm.touch(buffers[0], mr=mr)
    mr.managed_mr.residency.run_pending()
    assert [on_device(mr, each) >> 20 for each in buffers] == [16, 0, 0, 0, 0, 0]
    rmm_uvm.wake(mr)
    assert sum(on_device(mr, each) for each in buffers) >= 48 * MIB
    rmm_uvm.touch(buffers[1], mr=mr)
    mr.managed_mr.residency.run_pending()
    ahead_bytes = rmm_uvm.residency_statistics(mr).fetched_ahead_bytes
    for each in buffers[2:]:
        rmm_uvm.touch(each, mr=mr)
        mr.managed_mr.residency.run_pending()
    assert rmm_uvm.residency_statistics(mr).fetched_ahead_bytes > ahead_bytes


def test_memory_that_is_free_is_given_back() -> None:
    mr = make_pool(device_mib=256)
    filled(mr, 40, 8)  # and free again
    before = mr.managed_mr.slab_bytes
    slept = rmm_uvm.sleep(mr)
    assert slept.moved_bytes == 0
    assert slept.given_back_bytes == before - mr.managed_mr.slab_bytes
    assert slept.given_back_bytes > 0 or slept.reason
    assert rmm_uvm.residency_statistics(mr).resident_bytes == 0


def test_installed_pools_sleep_and_wake() -> None:
    rmm_uvm.reinitialize(
        driver=rmm_uvm.simulated_device(128 * MIB), device_budget=BUDGET, libraries=()
    )
    try:
        kept = rmm.DeviceBuffer(size=8 * MIB)
        assert rmm_uvm.sleep().moved_bytes >= 8 * MIB
        assert rmm_uvm.wake() >= 8 * MIB
        del kept
    finally:
        rmm_uvm.restore()


def test_without_a_budget_it_says_what_to_give() -> None:
    mr = make_pool(None)
    for call, name in ((rmm_uvm.sleep, "sleep"), (rmm_uvm.wake, "wake")):
        with pytest.raises(AvailabilityError, match=rf"{name}\(\) .* give device_budget='auto'"):
            call(mr)


def test_a_program_that_works_meanwhile_loses_nothing() -> None:
    mr = make_pool(dataclasses.replace(BUDGET, background=True, ahead=True))
    kept = [filled(mr, 8, number) for number in range(10)]  # 80 of 64
    over = threading.Event()
    rounds = {0: 0, 5: 0}
    wrong: list[int] = []

    def works(first: int) -> None:
        while not over.is_set():
            for number in range(first, first + 5):
                rmm_uvm.touch(kept[number], mr=mr)
                new = filled(mr, 2, 100 + number)
                if not (holds(kept[number], number) and holds(new, 100 + number)):
                    wrong.append(number)
            rounds[first] += 1

    threads = [threading.Thread(target=works, args=(first,)) for first in rounds]
    for each in threads:
        each.start()
    while min(rounds.values()) < 5:
        rmm_uvm.sleep(mr)
        rmm_uvm.wake(mr)
    over.set()
    for each in threads:
        each.join()
    assert not wrong
    assert all(holds(each, number) for number, each in enumerate(kept))
    statistics = rmm_uvm.residency_statistics(mr)
    assert statistics.resident_bytes <= 64 * MIB
    assert statistics.failed_calls == 0


def test_sleep_says_that_the_switch_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM", "off")
    assert rmm_uvm.sleep().reason == "switched off by RMM_UVM=off"
    assert rmm_uvm.wake() == 0
