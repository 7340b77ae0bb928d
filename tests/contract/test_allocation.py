# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Allocating and freeing: what RMM's own tests ask of a resource, asked of every chain.

docs/understand/contract.md has RMM's tests and those of here.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import rmm
from rmm.pylibrmm.stream import DEFAULT_STREAM, LEGACY_DEFAULT_STREAM

from rmm_uvm.errors import DoubleFreeError

MIB = 1 << 20
SIZES_BYTES = [1, 255, 256, 257, 1000, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB + 17]
FAR_TOO_MUCH_BYTES = 1 << 40


@pytest.mark.parametrize("nbytes", SIZES_BYTES)
def test_allocate_any_size_is_aligned_and_reusable(chain: Any, nbytes: int) -> None:
    for _ in range(3):
        pointer = chain.mr.allocate(nbytes)
        assert pointer != 0
        assert pointer % 256 == 0
        chain.mr.deallocate(pointer, nbytes)


def test_allocate_zero_bytes_can_be_freed_twice(chain: Any) -> None:
    pointer = chain.mr.allocate(0)
    chain.mr.deallocate(pointer, 0)
    if pointer == 0:  # null belongs to nobody
        chain.mr.deallocate(pointer, 0)


def test_allocations_alive_together_do_not_overlap(chain: Any) -> None:
    alive = [(chain.mr.allocate(nbytes), nbytes) for nbytes in SIZES_BYTES[:-1]]
    ordered = sorted(alive)
    for (low, low_bytes), (high, _) in itertools.pairwise(ordered):
        assert low + low_bytes <= high
    for pointer, nbytes in alive:
        chain.mr.deallocate(pointer, nbytes)


@pytest.mark.parametrize("stream", [DEFAULT_STREAM, LEGACY_DEFAULT_STREAM])
def test_allocate_on_default_streams_works(chain: Any, stream: Any) -> None:
    pointer = chain.mr.allocate(1000, stream)
    chain.mr.deallocate(pointer, 1000, stream)


def test_allocate_more_than_there_is_raises_and_keeps_state(chain: Any) -> None:
    held = chain.mr.allocate(1000)
    before_bytes = chain.held_bytes()

    with pytest.raises(MemoryError):
        chain.mr.allocate(FAR_TOO_MUCH_BYTES)

    assert chain.held_bytes() == before_bytes
    again = chain.mr.allocate(1000)
    assert again not in (0, held)
    chain.mr.deallocate(again, 1000)
    chain.mr.deallocate(held, 1000)


def test_allocate_until_full_then_free_one_makes_room(chain: Any) -> None:
    nbytes, alive = 4 * MIB, []
    while (pointer := allocated_or_none(chain.mr, nbytes)) is not None:
        alive.append(pointer)
    assert alive
    chain.mr.deallocate(alive.pop(), nbytes)
    alive.append(chain.mr.allocate(nbytes))
    for pointer in alive:
        chain.mr.deallocate(pointer, nbytes)


def test_free_twice_is_refused_and_counted(checking_chain: Any) -> None:
    mr = checking_chain.mr
    pointer, other = mr.allocate(1000), mr.allocate(1000)
    mr.deallocate(pointer, 1000)

    with pytest.raises(DoubleFreeError, match="was freed before"):
        mr.deallocate(pointer, 1000)

    assert mr.refused_frees == 1
    mr.deallocate(other, 1000)


def test_free_with_wrong_size_is_refused_then_right_size_works(checking_chain: Any) -> None:
    mr = checking_chain.mr
    pointer = mr.allocate(1000)
    for wrong_bytes in (999, 1001, 0):
        with pytest.raises(DoubleFreeError, match=f"{wrong_bytes} bytes"):
            mr.deallocate(pointer, wrong_bytes)
    assert mr.refused_frees == 3
    mr.deallocate(pointer, 1000)


def test_free_of_inner_pointer_is_refused(checking_chain: Any) -> None:
    pointer = checking_chain.mr.allocate(MIB)
    with pytest.raises(DoubleFreeError):
        checking_chain.mr.deallocate(pointer + 256, MIB)
    checking_chain.mr.deallocate(pointer, MIB)


def test_free_twice_below_rmm_adaptor_never_reaches_the_pool(
    device: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    # C++ callers cannot be told by an exception: the free is counted and reported.
    inner = _checked_chain(device)
    outer = rmm.mr.FailureCallbackResourceAdaptor(inner, lambda _bytes: False)
    pointer = outer.allocate(1000)
    outer.deallocate(pointer, 1000)

    outer.deallocate(pointer, 1000)

    assert inner.refused_frees == 1
    assert inner.get_allocated_bytes() == 0
    assert "refused to free" in capfd.readouterr().err
    first, second = outer.allocate(1000), outer.allocate(1000)
    assert first != second
    outer.deallocate(first, 1000)
    outer.deallocate(second, 1000)


def test_wrong_size_below_rmm_adaptor_names_the_right_one(
    device: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = _checked_chain(device)
    outer = rmm.mr.FailureCallbackResourceAdaptor(inner, lambda _bytes: False)
    pointer = outer.allocate(1000)
    outer.deallocate(pointer, 512)
    assert "with 512 bytes: it was allocated with 1000" in capfd.readouterr().err
    assert inner.get_allocated_bytes() == 1000
    outer.deallocate(pointer, 1000)


def test_free_from_another_thread_gives_the_memory_back(chain: Any) -> None:
    pointer = chain.mr.allocate(1000)
    thread = threading.Thread(target=chain.mr.deallocate, args=(pointer, 1000))
    thread.start()
    thread.join()
    again = chain.mr.allocate(1000)
    chain.mr.deallocate(again, 1000)


def test_many_threads_never_share_an_address(chain: Any) -> None:
    alive: set[int] = set()
    lock = threading.Lock()

    def work(seed: int) -> None:
        for turn in range(60):
            nbytes = 1 + (seed * 7919 + turn * 104729) % 9000
            pointer = chain.mr.allocate(nbytes)
            with lock:
                assert pointer not in alive
                alive.add(pointer)
            with lock:
                alive.remove(pointer)
            chain.mr.deallocate(pointer, nbytes)

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(4)))
    assert not alive


def allocated_or_none(mr: Any, nbytes: int) -> int | None:
    try:
        return int(mr.allocate(nbytes))
    except MemoryError:
        return None


def _checked_chain(device: Any) -> Any:
    import rmm_uvm

    return rmm_uvm.managed_pool(
        driver=device, initial_pool_size=8 * MIB, maximum_pool_size=64 * MIB
    )
