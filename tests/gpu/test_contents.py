# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""No live byte is lost: random sizes, live neighbours, streams of every kind, several threads."""

from __future__ import annotations

import concurrent.futures
import ctypes
import random

import cupy
import pytest
from rmm.pylibrmm.stream import Stream

import rmm_uvm
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.pool.slabs import RMM_KEEPS

from .contents import PatternBuffer

pytestmark = pytest.mark.gpu

POOL_BYTES = 512 << 20


class LegacyStream:
    """The legacy default stream by its explicit handle, in the CUDA stream protocol."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 1)


def streams() -> list[cupy.cuda.Stream]:
    """One stream of every kind: legacy as 0 and as 0x1, per-thread, blocking, non-blocking."""
    return [
        cupy.cuda.Stream.null,
        cupy.cuda.Stream.from_external(LegacyStream()),
        cupy.cuda.Stream.ptds,
        cupy.cuda.Stream(),
        cupy.cuda.Stream(non_blocking=True),
    ]


def random_size(generator: random.Random) -> int:
    """One byte to 24 MiB, log-uniform."""
    return int(2 ** generator.uniform(0, 24.6))


def churn(gpu: CudaDriver, mr: rmm_uvm.mr.UvmResourceAdaptor, seed: int, steps: int) -> int:
    """Allocate, free and evict at random; return the number of wrong bytes ever seen."""
    generator = random.Random(seed)
    kinds = streams()
    wrong = cupy.zeros(1, cupy.uint64)
    cupy.cuda.Device().synchronize()
    live: list[PatternBuffer] = []
    for step in range(steps):
        choice = generator.random()
        if choice < 0.5 and sum(b.nbytes for b in live) < POOL_BYTES // 8:
            buffer = PatternBuffer.make(
                mr, random_size(generator), seed * steps + step, generator.choice(kinds)
            )
            live.append(buffer)
        elif choice < 0.8 and live:
            buffer = live.pop(generator.randrange(len(live)))
            buffer.count_wrong(wrong)
            buffer.free(mr)
        elif choice < 0.85:
            # What is handed out on an idle stream is discarded first, on a busy one it is not.
            generator.choice(kinds).synchronize()
        elif live:
            # As an eviction: pages go to the host while kernels may be at work on them.
            buffer = generator.choice(live)
            gpu.prefetch(buffer.address, buffer.nbytes, "host", buffer.stream.ptr)
    for buffer in live:
        buffer.count_wrong(wrong)
        buffer.free(mr)
    cupy.cuda.Device().synchronize()
    return int(wrong[0])


@pytest.mark.parametrize("mode", ["auto", "always", "never"])
@pytest.mark.parametrize("threads", [1, 4])
def test_contents_under_churn_and_eviction_are_kept(
    gpu: CudaDriver, mode: str, threads: int
) -> None:
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        prefetch=mode,
        device_budget=None,
    )
    with concurrent.futures.ThreadPoolExecutor(threads) as workers:
        wrong = list(workers.map(lambda n: churn(gpu, mr, n + 1, 400), range(threads)))
    assert wrong == [0] * threads
    assert mr.get_allocated_bytes() == 0
    statistics = mr.statistics()
    assert statistics["failed_calls"] == 0
    if mode == "auto":
        assert statistics["discard_calls"] > 0
        assert statistics["undiscarded_bytes"] > 0
        assert statistics["prefetch_calls"] > 0


@pytest.mark.parametrize("budget", [None, "auto"])
@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize(
    ("least", "most"), [(1 << 20, 68 << 20), (300 << 10, 20 << 20)], ids=["large", "small"]
)
def test_full_pool_refuses_only_at_its_maximum_and_keeps_contents(
    gpu: CudaDriver, least: int, most: int, count: int, budget: str | None
) -> None:
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES // 4,
        maximum_pool_size=POOL_BYTES,
        device_budget=budget,
    )
    generator = random.Random(count)
    kinds = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
    wrong = cupy.zeros(1, cupy.uint64)
    cupy.cuda.Device().synchronize()
    live: list[PatternBuffer] = []

    def live_bytes() -> int:
        return sum(buffer.nbytes for buffer in live)

    def free(index: int) -> None:
        buffer = live.pop(index)
        buffer.count_wrong(wrong)
        buffer.free(mr)

    for step in range(600):
        nbytes = generator.randint(least, most)
        while live_bytes() + nbytes > POOL_BYTES * 0.98:
            free(generator.randrange(len(live)))
        # Fits by its bytes, so it has to be had, whatever the free pieces are.
        live.append(PatternBuffer.make(mr, nbytes, step, generator.choice(kinds)))
        if step % 20 == 0:  # RMM's pool takes over what is free in other streams before it refuses
            with pytest.raises(MemoryError):
                mr.allocate(POOL_BYTES, Stream(generator.choice(kinds)))
    why = ""
    while not why:  # what is left, in small pieces
        nbytes = generator.randint(256 << 10, 4 << 20)
        try:
            live.append(PatternBuffer.make(mr, nbytes, len(live), generator.choice(kinds)))
        except MemoryError as refused:
            why = str(refused)
    assert "may be live" in why
    assert live_bytes() / POOL_BYTES >= 0.98
    assert mr.get_allocated_bytes() == live_bytes()
    assert POOL_BYTES < mr.managed_mr.slab_bytes < 2 << 30
    while live:
        free(0)
    cupy.cuda.Device().synchronize()
    assert int(wrong[0]) == 0


@pytest.mark.parametrize("budget", [None, "auto"])
def test_trimmed_pool_keeps_contents_and_gives_all_memory_back(
    gpu: CudaDriver, budget: str | None
) -> None:
    free_bytes = gpu.memory()[0]
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES // 4,
        maximum_pool_size=POOL_BYTES,
        device_budget=budget,
    )
    generator = random.Random(7)
    kinds = streams()
    wrong = cupy.zeros(1, cupy.uint64)
    cupy.cuda.Device().synchronize()
    live: list[PatternBuffer] = []
    given_back_bytes = 0
    for step in range(500):
        if live and (generator.random() < 0.5 or sum(b.nbytes for b in live) > POOL_BYTES // 2):
            buffer = live.pop(generator.randrange(len(live)))
            buffer.count_wrong(wrong)
            buffer.free(mr)
        else:
            nbytes = random_size(generator) * 4
            live.append(PatternBuffer.make(mr, nbytes, step, generator.choice(kinds)))
        if step % 10 == 0:
            trimmed = rmm_uvm.trim(mr)
            assert trimmed.reason == RMM_KEEPS
            given_back_bytes += trimmed.given_back_bytes
    for buffer in live:
        buffer.count_wrong(wrong)
        buffer.free(mr)
    last = rmm_uvm.trim(mr)
    assert (mr.get_allocated_bytes(), mr.managed_mr.refused_frees) == (0, 0)
    assert int(wrong[0]) == 0
    if RMM_KEEPS:
        assert (given_back_bytes, last.given_back_bytes) == (0, 0)
        return
    assert (last.discarded_bytes, mr.managed_mr.slab_bytes) == (0, 0)
    assert given_back_bytes > POOL_BYTES // 4
    assert gpu.memory()[0] > free_bytes - (64 << 20)


def test_nothing_is_trimmed_while_a_stream_captures(gpu: CudaDriver) -> None:
    mr = rmm_uvm.managed_pool(driver=gpu, initial_pool_size=64 << 20, maximum_pool_size=POOL_BYTES)
    values = cupy.arange(1000)
    stream = cupy.cuda.Stream()
    with stream:
        cupy.add(values, 1, out=values)  # its kernel is loaded
        stream.begin_capture()
        cupy.add(values, 1, out=values)
        assert "a stream captures, or may" in rmm_uvm.trim(mr).reason
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()
    assert values[0] == 2
    assert mr.managed_mr.slab_bytes == 64 << 20
    assert rmm_uvm.trim(mr).given_back_bytes == (0 if RMM_KEEPS else 64 << 20)


def test_discarding_a_live_neighbour_would_be_seen(gpu: CudaDriver) -> None:
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=None,
    )
    wrong = cupy.zeros(1, cupy.uint64)
    buffer = PatternBuffer.make(mr, 8 << 20, 3, cupy.cuda.Stream.null)
    cupy.cuda.Device().synchronize()
    # The device keeps stale pages of another pattern, so that what is lost cannot look like luck.
    gpu.prefetch(buffer.address, buffer.nbytes, "host")
    gpu.synchronize()
    ctypes.memset(buffer.address, 0, buffer.nbytes)
    # What the policy must never do to a block that holds live bytes.
    gpu.discard_and_prefetch(buffer.address, buffer.nbytes, "device")
    data = cupy.ndarray(
        (buffer.nbytes,),
        cupy.uint8,
        cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, mr), 0),
    )
    assert bool((data != 0).any()), "the zeros survived a discard: this check could not fail"
    data[0] = data[0] + 1
    buffer.count_wrong(wrong)
    cupy.cuda.Device().synchronize()
    assert int(wrong[0]) > 0
    buffer.free(mr)
