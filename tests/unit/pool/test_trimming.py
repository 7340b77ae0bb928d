# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`rmm_uvm.trim`: what pools hold and nobody uses goes back, and pools go on as before."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.pool import trimming

MIB = 1 << 20


def pool(maximum: str = "256MiB", **keywords: Any) -> rmm_uvm.mr.UvmResourceAdaptor:
    keywords = {"driver": "simulated:64MiB", "initial_pool_size": "32MiB", **keywords}
    return rmm_uvm.managed_pool(maximum_pool_size=maximum, **keywords)


def slabs_mib(mr: rmm_uvm.mr.UvmResourceAdaptor) -> int:
    return round(mr.managed_mr.slab_bytes / MIB)


def used_and_freed(mr: rmm_uvm.mr.UvmResourceAdaptor, *sizes_mib: int) -> None:
    buffers = [rmm.DeviceBuffer(size=size * MIB, mr=mr) for size in sizes_mib]
    del buffers


def test_with_nothing_alive_all_memory_goes_back_and_without_trim_none() -> None:
    mr = pool()
    used_and_freed(mr, 40, 100)
    before_bytes = mr.managed_mr.slab_bytes
    assert before_bytes >= 140 * MIB
    taken_bytes = mr.managed_mr.account.used_bytes
    trimmed = rmm_uvm.trim(mr)
    assert (trimmed.given_back_bytes, trimmed.discarded_bytes) == (before_bytes, 0)
    assert (mr.managed_mr.slab_bytes, mr.get_allocated_bytes()) == (0, 0)
    assert mr.managed_mr.account.used_bytes == taken_bytes - before_bytes
    assert str(trimmed).endswith("MiB given back, and 0 B discarded beside what is in use")


def test_device_memory_is_free_for_others_afterwards() -> None:
    mr = pool()
    free_bytes = mr.driver.memory()[0]
    used_and_freed(mr, 30)
    assert mr.driver.memory()[0] < free_bytes
    rmm_uvm.trim(mr)
    assert mr.driver.memory()[0] == 64 * MIB


def test_what_is_in_use_keeps_its_slab_and_its_contents() -> None:
    mr = pool(driver=rmm_uvm.simulated_device("64MiB"))
    kept = rmm.DeviceBuffer(size=3 * MIB, mr=mr)
    used_and_freed(mr, 100)
    trimmed = rmm_uvm.trim(mr)
    assert slabs_mib(mr) == 32
    assert trimmed.given_back_bytes >= 100 * MIB
    assert trimmed.discarded_bytes == 28 * MIB  # 32, less the blocks of what is in use
    assert mr.allocation_at(kept.ptr) == (kept.ptr, 3 * MIB)
    del kept
    assert rmm_uvm.trim(mr).given_back_bytes == 32 * MIB


def test_pool_takes_no_more_than_it_needs_afterwards_and_keeps_its_maximum() -> None:
    mr = pool()
    rmm_uvm.trim(mr)
    small = rmm.DeviceBuffer(size=1000, mr=mr)
    assert slabs_mib(mr) <= 4
    large = rmm.DeviceBuffer(size=90 * MIB, mr=mr)
    assert 90 <= slabs_mib(mr) <= 96
    with pytest.raises(MemoryError, match=r"256\.0 MiB may be live"):
        rmm.DeviceBuffer(size=170 * MIB, mr=mr)
    rest = rmm.DeviceBuffer(size=160 * MIB, mr=mr)
    assert mr.get_allocated_bytes() == 250 * MIB + 1000
    del small, large, rest


def test_trimming_again_and_again_uses_nothing_up() -> None:
    mr = pool()
    for turn in range(500):
        used_and_freed(mr, 1 + turn % 7, 200)
        assert rmm_uvm.trim(mr).given_back_bytes >= 200 * MIB
        assert mr.managed_mr.slab_bytes == 0
    everything = rmm.DeviceBuffer(size=256 * MIB, mr=mr)
    del everything


@pytest.mark.parametrize("seed", range(3))
def test_end_of_a_pool_frees_each_slab_once_whatever_was_given_back(seed: int) -> None:
    mr = pool()
    below = mr.managed_mr
    chosen = random.Random(seed)
    live: list[rmm.DeviceBuffer] = []
    for _ in range(400):
        if live and chosen.random() < 0.5:
            live.pop(chosen.randrange(len(live)))
        else:
            try:
                live.append(rmm.DeviceBuffer(size=chosen.randrange(1, 40 * MIB), mr=mr))
            except MemoryError:
                live.clear()
        if chosen.random() < 0.3:
            rmm_uvm.trim(mr)
        held = sum(buffer.size for buffer in live)
        assert mr.get_allocated_bytes() == held <= below.slab_bytes
    spans = sorted((buffer.ptr, buffer.ptr + buffer.size) for buffer in live)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    live.clear()
    del mr
    gc.collect()
    assert (below.slab_bytes, below.refused_frees, below.account.used_bytes) == (0, 0, 0)


def test_under_a_budget_what_went_back_does_not_count() -> None:
    mr = pool(device_budget="48MiB", initial_pool_size="40MiB")
    kept = rmm.DeviceBuffer(size=8 * MIB, mr=mr)
    used_and_freed(mr, 30)
    assert rmm_uvm.residency_statistics(mr).resident_bytes == 38 * MIB
    assert rmm_uvm.trim(mr).discarded_bytes == 32 * MIB  # beside what is kept
    assert rmm_uvm.residency_statistics(mr).resident_bytes == 8 * MIB
    del kept
    assert rmm_uvm.trim(mr).given_back_bytes == 40 * MIB
    assert rmm_uvm.residency_statistics(mr).resident_bytes == 0


def test_of_a_pool_of_rmms_own_classes_no_slab_is_given_back() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    below = rmm_uvm.mr.ManagedMemoryResource(device, account=ManagedAccount())
    mr = rmm_uvm.mr.UvmResourceAdaptor(rmm.mr.PoolMemoryResource(below, 32 * MIB, 64 * MIB))
    used_and_freed(mr, 20)
    trimmed = rmm_uvm.trim(mr)
    assert (trimmed.given_back_bytes, trimmed.discarded_bytes) == (0, 32 * MIB)
    assert mr.managed_mr.slab_bytes == 32 * MIB


def test_threads_allocate_while_another_one_trims() -> None:
    mr = pool("512MiB")
    failures: list[BaseException] = []
    ended = threading.Event()

    def allocate(seed: int) -> None:
        chosen = random.Random(seed)
        try:
            for _ in range(150):
                one = rmm.DeviceBuffer(size=chosen.randrange(1, 30 * MIB), mr=mr)
                assert mr.allocation_at(one.ptr + one.size - 1) == (one.ptr, one.size)
                del one
        except BaseException as error:
            failures.append(error)

    def trim() -> None:
        while not ended.is_set():
            rmm_uvm.trim(mr)

    trimming = threading.Thread(target=trim)
    threads = [threading.Thread(target=allocate, args=(seed,)) for seed in range(4)]
    for thread in (trimming, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    trimming.join()
    assert failures == []
    rmm_uvm.trim(mr)
    assert (mr.managed_mr.slab_bytes, mr.refused_frees, mr.managed_mr.refused_frees) == (0, 0, 0)


@contextmanager
def trimmed_beside(mr: rmm_uvm.mr.UvmResourceAdaptor) -> Iterator[None]:
    """Have a thread trim a pool again and again."""
    ended = threading.Event()

    def trim() -> None:
        while not ended.is_set():
            rmm_uvm.trim(mr)

    thread = threading.Thread(target=trim)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def together(count: int, call: Any) -> list[Any]:
    """Return what calls give that begin at the same time, each in a thread."""
    begin = threading.Barrier(count)
    results: list[Any] = []

    def work() -> None:
        begin.wait()
        try:
            results.append(call())
        except MemoryError as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_together_pass_the_maximum_no_further_than_before_a_trim() -> None:
    for _ in range(20):
        mr = pool()
        rmm_uvm.trim(mr)
        made = together(16, lambda mr=mr: rmm.DeviceBuffer(size=200 * MIB, mr=mr))
        assert mr.get_allocated_bytes() <= 400 * MIB  # a request that slabs had room for, and one
        assert sum(isinstance(each, MemoryError) for each in made) >= 14


def test_slab_after_a_trim_fits_the_maximum_where_the_request_does() -> None:
    mr = pool()
    rmm_uvm.trim(mr)
    kept = [rmm.DeviceBuffer(size=size * MIB, mr=mr) for size in (246, 1)]
    assert mr.managed_mr.slab_bytes <= 256 * MIB
    del kept


@pytest.mark.parametrize("initial", ["32MiB", "256MiB"])
def test_no_request_is_refused_for_a_trim_beside_it(
    initial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "256MiB")
    mr = pool(initial_pool_size=initial)
    kept = rmm.DeviceBuffer(size=MIB, mr=mr)
    with trimmed_beside(mr):
        for _ in range(1000):
            used_and_freed(mr, 1)
    del kept


def test_child_of_a_fork_while_a_thread_trims_can_trim_and_logs_as_before() -> None:
    mr = pool()
    level = rmm.get_logging_level()
    with trimmed_beside(mr):
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                rmm_uvm.trim(mr)
                rmm_uvm.trim_when_idle(None)
                os._exit(0 if rmm.get_logging_level() == level else 3)
            assert os.waitpid(child, 0)[1] == 0


def test_memory_that_cannot_be_freed_is_told() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    account = ManagedAccount()
    below = rmm_uvm.mr.ManagedMemoryResource(device, account=account, pool_maximum_bytes=256 * MIB)
    mr = rmm_uvm.mr.UvmResourceAdaptor(rmm.mr.PoolMemoryResource(below, 32 * MIB, 256 * MIB))
    device.fail_call("free_managed")
    trimmed = rmm_uvm.trim(mr)
    assert trimmed.given_back_bytes == 0
    assert trimmed.reason == "device 0: 32.0 MiB could not be freed"
    used_and_freed(mr, 40)
    held_bytes = below.slab_bytes
    assert rmm_uvm.trim(mr) == trimming.Trimmed(held_bytes, 0)
    assert (below.slab_bytes, account.used_bytes) == (0, 0)


def test_what_cannot_be_discarded_is_told() -> None:
    mr = pool(driver=rmm_uvm.simulated_device("64MiB", discard=False))
    kept = rmm.DeviceBuffer(size=MIB, mr=mr)
    assert rmm_uvm.trim(mr).reason.endswith("the simulated device was made without discard")
    del kept


def test_rmms_log_is_as_before_and_gets_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    level = rmm.get_logging_level()
    mr = pool()
    used_and_freed(mr, 40)
    threads = [threading.Thread(target=rmm_uvm.trim, args=(mr,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mr.managed_mr.slab_bytes == 0
    assert rmm.get_logging_level() == level
    assert capfd.readouterr() == ("", "")


def test_installed_pools_are_meant_where_none_is_named() -> None:
    with pytest.raises(AvailabilityError, match="no managed pool is installed"):
        rmm_uvm.trim()
    rmm_uvm.reinitialize(driver="simulated:64MiB", initial_pool_size="16MiB")
    try:
        assert rmm_uvm.trim().given_back_bytes == 16 * MIB
    finally:
        rmm_uvm.restore()


def test_what_is_no_pool_of_ours_is_named() -> None:
    with pytest.raises(ConfigurationError, match="CudaMemoryResource is not a managed pool"):
        rmm_uvm.trim(rmm.mr.CudaMemoryResource())


def test_switched_off_there_is_nothing_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM", "off")
    assert str(rmm_uvm.trim()).endswith("0 B discarded beside what is in use: RMM_UVM=off")


def test_idle_is_told_once_when_nothing_changed_for_so_many_looks() -> None:
    watch = trimming._IdleWatch(3)
    assert [watch.look(levels) for levels in "aaabbbbbb"] == [False] * 6 + [True, False, False]
    watch.settle("c")  # trimming changed it
    assert not any(watch.look("c") for _ in range(9))
    assert [watch.look(levels) for levels in "dddd"] == [False, False, False, True]


def test_what_others_use_while_a_thread_trims_is_trimmed_later(
    installed: rmm_uvm.mr.UvmResourceAdaptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = trimming.trim, []

    def trim() -> rmm_uvm.pool.slabs.Trimmed:
        calls.append(real())
        if len(calls) == 1:
            used_and_freed(installed, 9)
        if len(calls) == 2:
            used_and_freed(installed, 9)
            return rmm_uvm.pool.slabs.Trimmed(0, 0, "a stream captures")
        return calls[-1]

    monkeypatch.setattr(trimming, "trim", trim)
    rmm_uvm.trim_when_idle(0.1)
    wait_for(lambda: len(calls) == 3 and installed.managed_mr.slab_bytes == 0)


@pytest.fixture
def installed() -> Iterator[rmm_uvm.mr.UvmResourceAdaptor]:
    handle = rmm_uvm.reinitialize(driver="simulated:64MiB", initial_pool_size="16MiB")
    yield handle.devices[0].managed_mr
    rmm_uvm.trim_when_idle(None)
    rmm_uvm.restore()


def wait_for(seen: Any) -> None:
    until = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_idle_pools_are_trimmed_by_a_thread_that_ends(
    installed: rmm_uvm.mr.UvmResourceAdaptor,
) -> None:
    rmm_uvm.trim_when_idle(0.1)
    assert "rmm_uvm trimmer" in {thread.name for thread in threading.enumerate()}
    wait_for(lambda: installed.managed_mr.slab_bytes == 0)
    used_and_freed(installed, 3)
    wait_for(lambda: installed.managed_mr.slab_bytes == 0)
    rmm_uvm.trim_when_idle(None)
    assert "rmm_uvm trimmer" not in {thread.name for thread in threading.enumerate()}
    used_and_freed(installed, 3)
    assert installed.managed_mr.slab_bytes > 0


def test_idle_time_may_be_changed_and_comes_before_a_pool() -> None:
    rmm_uvm.trim_when_idle(1000)
    rmm_uvm.trim_when_idle(0.1)
    handle = rmm_uvm.reinitialize(driver="simulated:64MiB", initial_pool_size="16MiB")
    try:
        wait_for(lambda: handle.devices[0].managed_mr.managed_mr.slab_bytes == 0)
    finally:
        rmm_uvm.trim_when_idle(None)
        rmm_uvm.restore()


@pytest.mark.parametrize("seconds", [0, -1, 1e-9, True, "60", float("nan"), float("inf")])
def test_idle_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"give a time of 0\.05 s or more, or None to end it"
    ):
        rmm_uvm.trim_when_idle(seconds)
