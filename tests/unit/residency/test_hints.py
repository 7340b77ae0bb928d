# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints: what they move, what they leave alone, and what they refuse."""

from __future__ import annotations

import _thread
import contextlib
import functools
import linecache
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, NotEnteredWarning
from rmm_uvm.pool.hints import Hinted
from rmm_uvm.residency import Budget

from .cudf_stand_ins import Buffer, Column, DataFrame, PlcColumn

MIB = 1 << 20
HINTS: tuple[Callable[..., Any], ...] = (rmm_uvm.touch, rmm_uvm.prefetch, rmm_uvm.evict)


@pytest.fixture
def device() -> Any:
    return rmm_uvm.simulated_device("64MiB")


@pytest.fixture
def mr(device: Any) -> rmm_uvm.mr.UvmResourceAdaptor:
    return rmm_uvm.managed_pool(
        driver=device, device_budget=Budget(16 * MIB, background=False), initial_pool_size="32MiB"
    )


# -- what moves ----------------------------------------------------------------------------------


def test_evicted_memory_is_on_the_host_and_touched_memory_back(
    device: Any, mr: Any, block: int
) -> None:
    assert device.resident_bytes(block, 8 * MIB) == 8 * MIB
    assert rmm_uvm.evict((block, 8 * MIB), mr=mr) == Hinted(8 * MIB, 8 * MIB, 0)
    assert device.resident_bytes(block, 8 * MIB) == 0
    assert rmm_uvm.touch((block, 3 * MIB), mr=mr) == 3 * MIB
    assert device.resident_bytes(block, 8 * MIB) == 4 * MIB  # whole blocks
    assert rmm_uvm.prefetch((block, 8 * MIB), mr=mr) == 8 * MIB
    assert device.resident_bytes(block, 8 * MIB) == 8 * MIB


def test_touch_is_learnt_from_and_prefetch_is_not(mr: Any, block: int) -> None:
    before = rmm_uvm.residency_statistics(mr)
    rmm_uvm.prefetch((block, 8 * MIB), mr=mr)
    assert rmm_uvm.residency_statistics(mr).wanted_bytes == before.wanted_bytes
    rmm_uvm.touch((block, 8 * MIB), mr=mr)
    assert rmm_uvm.residency_statistics(mr).wanted_bytes == before.wanted_bytes + 8 * MIB


def test_eviction_leaves_blocks_that_it_shares_and_says_so(
    device: Any, mr: Any, block: int
) -> None:
    mine, neighbour = (block + MIB, 4 * MIB), (block, MIB)
    assert rmm_uvm.evict(mine, mr=mr) == Hinted(4 * MIB, 2 * MIB, 2 * MIB)
    assert device.resident_bytes(*neighbour) == MIB
    assert device.resident_bytes(block, 8 * MIB) == 6 * MIB


def test_eviction_of_less_than_a_block_moves_nothing_and_says_so(mr: Any, block: int) -> None:
    assert rmm_uvm.evict((block + 100, 1000), mr=mr) == Hinted(1000, 0, 1000)


def test_eviction_of_neighbours_that_are_both_the_objects_moves_the_block_between(
    device: Any, mr: Any, block: int
) -> None:
    halves = [(block + 3 * MIB, MIB), (block, 3 * MIB), (block + MIB, MIB)]  # and one of them twice
    assert rmm_uvm.evict(halves, mr=mr) == Hinted(4 * MIB, 4 * MIB, 0)
    assert device.resident_bytes(block, 4 * MIB) == 0


def test_eviction_of_what_is_away_or_pinned_says_what_stayed(mr: Any, block: int) -> None:
    rmm_uvm.evict((block, 2 * MIB), mr=mr)
    with rmm_uvm.pin((block + 2 * MIB, 2 * MIB), mr=mr):
        found = rmm_uvm.evict((block, 8 * MIB), mr=mr)
    assert found == Hinted(8 * MIB, 4 * MIB, 0)
    assert found.stayed_bytes == 4 * MIB


def test_eviction_that_the_driver_refuses_says_that_all_stayed(
    device: Any, mr: Any, block: int
) -> None:
    device.fail_call("prefetch")
    found = rmm_uvm.evict((block, 8 * MIB), mr=mr)
    assert (found.moved_bytes, found.stayed_bytes) == (0, 8 * MIB)
    assert device.resident_bytes(block, 8 * MIB) == 8 * MIB


def test_eviction_without_a_budget_moves_whole_blocks_too(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="32MiB")
    buffer = rmm.DeviceBuffer(size=5 * MIB, mr=mr)
    assert rmm_uvm.evict(buffer, mr=mr) == Hinted(5 * MIB, 4 * MIB, MIB)
    assert device.resident_bytes(buffer.ptr, 5 * MIB) == MIB
    assert rmm_uvm.prefetch(buffer, mr=mr) == 5 * MIB
    assert device.resident_bytes(buffer.ptr, 5 * MIB) == 5 * MIB


@pytest.mark.parametrize("budget", [None, Budget(16 * MIB, background=False)])
def test_bytes_of_an_eviction_add_up_at_the_end_of_a_slab(device: Any, budget: Any) -> None:
    # Without a pool a slab is an allocation, and may end within a block.
    managed = rmm_uvm.mr.ManagedMemoryResource(device, budget=budget)
    mr = rmm_uvm.mr.UvmResourceAdaptor(managed)
    address = mr.allocate(3 * MIB)
    found = rmm_uvm.evict((address, 3 * MIB), mr=mr)
    assert found.moved_bytes == 3 * MIB - device.resident_bytes(address, 3 * MIB)
    assert found.stayed_bytes == 0
    assert found.left_bytes == (MIB if budget is None else 0)
    mr.deallocate(address, 3 * MIB)


def test_pinned_memory_does_not_leave_for_a_budget(device: Any, mr: Any, block: int) -> None:
    with rmm_uvm.pin((block, 8 * MIB), mr=mr) as nbytes:
        assert nbytes == 8 * MIB
        assert rmm_uvm.residency_statistics(mr).pinned_bytes == 8 * MIB
        others = [mr.allocate(8 * MIB) for _ in range(2)]
        assert device.resident_bytes(block, 8 * MIB) == 8 * MIB
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0
    others.append(mr.allocate(8 * MIB))
    assert device.resident_bytes(block, 8 * MIB) == 0
    for address in others:
        mr.deallocate(address, 8 * MIB)


def test_pins_may_be_nested_and_end_with_an_error_too(mr: Any, block: int) -> None:
    with rmm_uvm.pin((block, 4 * MIB), mr=mr):
        with pytest.raises(ZeroDivisionError), rmm_uvm.pin((block, 2 * MIB), mr=mr):
            1 / 0  # noqa: B018
        assert rmm_uvm.evict((block, 8 * MIB), mr=mr).moved_bytes == 4 * MIB
    assert rmm_uvm.evict((block, 4 * MIB), mr=mr).moved_bytes == 4 * MIB


def test_frame_of_cudf_moves_with_all_of_its_columns(device: Any, mr: Any, block: int) -> None:
    frame = DataFrame(
        Column(PlcColumn(Buffer(block, 3 * MIB), Buffer(block + 3 * MIB, MIB))),
        Column(PlcColumn(children=(PlcColumn(Buffer(block + 4 * MIB, 4 * MIB)),))),
    )
    assert rmm_uvm.evict(frame, mr=mr) == Hinted(8 * MIB, 8 * MIB, 0)
    assert rmm_uvm.touch(frame, mr=mr) == 8 * MIB
    assert device.resident_bytes(block, 8 * MIB) == 8 * MIB


# -- which pool ----------------------------------------------------------------------------------


def test_installed_pools_are_found_by_address() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", devices=(0, 1), device_budget="16MiB", libraries=()
    ) as handle:
        buffers = [
            rmm.DeviceBuffer(size=2 * MIB, mr=device.managed_mr) for device in handle.devices
        ]
        assert rmm_uvm.touch(buffers) == 4 * MIB
        assert rmm_uvm.evict(buffers[1]).moved_bytes == 2 * MIB
        assert [rmm_uvm.residency_statistics(device=i).resident_bytes for i in (0, 1)] == [
            2 * MIB,
            0,
        ]
        del buffers


def test_memory_of_others_beside_ours_is_passed_over_and_not_counted(mr: Any, block: int) -> None:
    foreign = (0x7000, 4096)
    assert rmm_uvm.touch([foreign, (block, 2 * MIB)], mr=mr) == 2 * MIB


def test_empty_object_is_nothing_and_no_error(mr: Any) -> None:
    assert rmm_uvm.touch([], mr=mr) == 0
    assert rmm_uvm.evict(rmm.DeviceBuffer(size=0, mr=mr), mr=mr) == Hinted(0, 0, 0)


@pytest.mark.parametrize("hint", HINTS)
def test_hint_without_an_installed_pool_says_what_to_do(hint: Callable[..., Any]) -> None:
    with pytest.raises(AvailabilityError, match=r"call rmm_uvm\.reinitialize first, or give mr="):
        hint((4096, 8))


@pytest.mark.parametrize("hint", HINTS)
def test_hint_on_foreign_memory_is_refused(hint: Callable[..., Any], device: Any, mr: Any) -> None:
    cuda = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    buffer = rmm.DeviceBuffer(size=4096, mr=cuda)
    with pytest.raises(DataError, match="DeviceBuffer: its only buffer is not memory of the pool"):
        hint(buffer, mr=mr)
    with pytest.raises(DataError, match="none of its buffers"):
        hint([buffer, (4096, 8)], mr=mr)


@pytest.mark.parametrize("hint", HINTS)
def test_hint_on_host_memory_is_refused(hint: Callable[..., Any], mr: Any) -> None:
    with pytest.raises(DataError, match="is in host memory"):
        hint(np.zeros(3), mr=mr)


@pytest.mark.parametrize("hint", HINTS)
def test_hint_past_the_end_of_an_allocation_is_refused_before_anything_moves(
    hint: Callable[..., Any], device: Any, mr: Any, block: int
) -> None:
    neighbour = mr.allocate(4 * MIB)
    before = device.statistics()
    for nbytes in (8 * MIB + 1, 1 << 40):
        with pytest.raises(DataError, match="pass the end of their allocation, 8388608 bytes at"):
            hint((block, nbytes), mr=mr)
    assert device.statistics() == before
    mr.deallocate(neighbour, 4 * MIB)


@pytest.mark.parametrize("hint", HINTS)
def test_hint_on_freed_memory_is_refused_before_anything_moves(
    hint: Callable[..., Any], device: Any, mr: Any, block: int
) -> None:
    freed = mr.allocate(4 * MIB)
    hint([(block, MIB), (freed + MIB, MIB)], mr=mr)  # alive: inside of it will do
    mr.deallocate(freed, 4 * MIB)
    before = device.statistics()
    for address in (freed, freed + MIB):
        with pytest.raises(DataError, match=f"1.00 MiB at {address:#x} were freed"):
            hint([(block, MIB), (address, MIB)], mr=mr)
    assert device.statistics() == before


def test_pin_of_freed_memory_is_refused_and_pins_nothing(mr: Any, block: int) -> None:
    freed = mr.allocate(4 * MIB)
    mr.deallocate(freed, 4 * MIB)
    things = [(block, MIB), (freed, MIB)]
    with pytest.raises(DataError, match="were freed"), rmm_uvm.pin(things, mr=mr):
        pytest.fail("the body ran")
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0


def test_allocation_is_found_by_every_address_in_it_while_it_lives(mr: Any) -> None:
    address = mr.allocate(1000)
    assert mr.allocation_at(address) == mr.allocation_at(address + 999) == (address, 1000)
    assert mr.allocation_at(address + 1000) is None
    mr.deallocate(address, 1000)
    assert mr.allocation_at(address) is None


@pytest.mark.parametrize("hint", HINTS)
def test_hint_on_memory_of_a_pool_that_is_gone_is_refused(
    hint: Callable[..., Any], mr: Any, block: int
) -> None:
    gone = rmm_uvm.managed_pool(driver="simulated:64MiB")  # beside the other, so elsewhere
    address = gone.allocate(2 * MIB)
    gone.deallocate(address, 2 * MIB)
    del gone
    with pytest.raises(DataError, match="was freed"):
        hint((address, 2 * MIB), mr=mr)


@pytest.mark.parametrize("hint", HINTS)
def test_hint_with_an_unknown_stream_is_refused_before_anything_moves(
    hint: Callable[..., Any], device: Any, mr: Any, block: int
) -> None:
    before = device.statistics()
    with pytest.raises(DataError, match="is not a CUDA stream"):
        hint((block, 8 * MIB), mr=mr, stream=object())
    assert device.statistics() == before


@pytest.mark.parametrize("hint", HINTS)
def test_hint_with_another_resource_is_refused(hint: Callable[..., Any], device: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a managed pool of rmm_uvm"):
        hint((4096, 8), mr=rmm_uvm.mr.SimulatedCudaMemoryResource(device))


def test_pin_of_foreign_memory_is_refused_and_pins_nothing(mr: Any) -> None:
    with pytest.raises(DataError), rmm_uvm.pin((4096, 8), mr=mr):
        pytest.fail("the body ran")
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0


# -- iterators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("hint", [*HINTS, functools.partial(rmm_uvm.advise, read_mostly=True)])
@pytest.mark.parametrize(
    "given",
    [iter, lambda things: map(tuple, things), lambda things: dict(enumerate(things)).values()],
)
def test_hint_takes_iterators_as_lists(
    hint: Callable[..., Any], given: Callable[[Any], Any], mr: Any, block: int
) -> None:
    halves = [(block, 2 * MIB), (block + 4 * MIB, 2 * MIB)]
    found, of_list = (hint(things, mr=mr) for things in (given(halves), halves))
    assert getattr(found, "nbytes", found) == getattr(of_list, "nbytes", of_list) == 4 * MIB


def test_iterator_that_was_used_up_is_about_nothing(mr: Any, block: int) -> None:
    things = iter([(block, MIB)])
    assert rmm_uvm.touch(things, mr=mr) == MIB
    assert rmm_uvm.touch(things, mr=mr) == 0


def test_what_an_iterator_makes_lives_while_it_is_looked_up_or_pinned(mr: Any) -> None:
    def made() -> Iterator[rmm.DeviceBuffer]:
        yield from (rmm.DeviceBuffer(size=2 * MIB, mr=mr) for _ in range(3))

    assert rmm_uvm.touch(made(), mr=mr) == 6 * MIB
    with rmm_uvm.pin(made(), mr=mr) as nbytes:
        assert nbytes == mr.get_allocated_bytes() == 6 * MIB
    assert mr.get_allocated_bytes() == 0


# -- a pin that is never entered -----------------------------------------------------------------


def test_pin_without_with_pins_nothing_and_warns_of_the_line_that_called_it(
    mr: Any, block: int
) -> None:
    with pytest.warns(NotEnteredWarning, match="write `with rmm_uvm.pin") as caught:
        rmm_uvm.pin((block, MIB), mr=mr)
    assert [one.filename for one in caught] == [__file__]
    assert "rmm_uvm.pin((block" in linecache.getline(__file__, caught[0].lineno)
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0


def test_pin_as_a_decorator_pins_for_each_call(mr: Any, block: int) -> None:
    @rmm_uvm.pin((block, 2 * MIB), mr=mr)
    def pinned_bytes(factor: int) -> int:
        return factor * int(rmm_uvm.residency_statistics(mr).pinned_bytes)

    assert [pinned_bytes(1), pinned_bytes(2)] == [2 * MIB, 4 * MIB]
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0


def test_pin_that_is_all_that_a_thread_does_warns_too(mr: Any, block: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _thread.start_new_thread(rmm_uvm.pin, ((block, MIB),), {"mr": mr})  # nobody calls it
        end = time.monotonic() + 10
        while not len(caught) and time.monotonic() < end:
            time.sleep(0.01)
    assert [one.category for one in caught] == [NotEnteredWarning]
    assert "was never entered" in str(caught[0].message)


def test_pin_that_is_kept_warns_of_its_call_and_not_of_where_it_goes(mr: Any, block: int) -> None:
    kept = [rmm_uvm.pin((block, MIB), mr=mr)]
    with pytest.warns(NotEnteredWarning) as caught:
        kept.clear()
    assert "kept = [rmm_uvm.pin(" in linecache.getline(__file__, caught[0].lineno)


def test_context_that_is_kept_until_the_program_ends_warns_too(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import contextlib\n"
        "from rmm_uvm.support.user_line import users_line\n"
        "from rmm_uvm.support.with_only import WithOnly\n"
        "kept = WithOnly(contextlib.nullcontext, 'nothing was done', users_line())\n"
        "with WithOnly(contextlib.nullcontext, 'nothing was done', users_line()): pass\n"
    )
    ended = subprocess.run(
        [sys.executable, "-P", str(program)], capture_output=True, text=True, check=True
    )
    lines = ended.stderr.splitlines()
    assert lines[0] == f"{program}:4: NotEnteredWarning: nothing was done"
    assert ended.stderr.count("NotEnteredWarning") == 1


@pytest.mark.filterwarnings("error")
def test_pin_that_was_entered_warns_of_nothing_and_lets_go_of_what_it_had(mr: Any) -> None:
    buffer = rmm.DeviceBuffer(size=2 * MIB, mr=mr)
    context = rmm_uvm.pin(buffer, mr=mr)
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(context) == 2 * MIB
        del buffer
        assert mr.get_allocated_bytes() == 2 * MIB  # the pin has it
    assert mr.get_allocated_bytes() == 0
    with pytest.raises(RuntimeError, match="entered before"), context:
        pytest.fail("the body ran")


@pytest.mark.filterwarnings("error")
def test_pin_that_failed_to_pin_warns_of_nothing(mr: Any) -> None:
    with pytest.raises(DataError), rmm_uvm.pin((4096, 8), mr=mr):
        pytest.fail("the body ran")


def test_hint_on_memory_of_an_earlier_pool_says_so_and_changes_nothing() -> None:
    arguments = {"driver": "simulated:64MiB", "initial_pool_size": "16MiB", "libraries": ()}
    first = rmm_uvm.reinitialize(device_budget="16MiB", **arguments).managed_mr
    kept = rmm.DeviceBuffer(size=4 * MIB, mr=first)
    second = rmm_uvm.reinitialize(device_budget="16MiB", **arguments).managed_mr
    other = rmm.DeviceBuffer(size=4 * MIB, mr=second)
    before = [rmm_uvm.residency_statistics(mr) for mr in (first, second)]
    for hint in HINTS:
        with pytest.raises(DataError, match="of a pool that is not installed any more: make it"):
            hint((kept.ptr, kept.size))
    assert [rmm_uvm.residency_statistics(mr) for mr in (first, second)] == before
    assert rmm_uvm.touch((kept.ptr, kept.size), mr=first) == 4 * MIB  # as it says
    del kept, first
    with pytest.raises(DataError, match="it is foreign, was freed, or is on the host"):
        rmm_uvm.touch((1 << 40, 4 * MIB))
    del other, second
    rmm_uvm.restore()
