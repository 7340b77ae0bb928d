# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests of ucxuvm run in processes of their own: ``comm_programs.py NAME``.

Two processes; on one GPU, or on two where there are two. UCX keeps threads and files until a
process ends. Status 0: everything that is asserted was so.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import cupy
import dask
import rmm
from distributed.comm import connect, listen
from distributed.comm.core import CommClosedError
from distributed.protocol import to_serialize
from rmm.allocators.cupy import rmm_cupy_allocator

import rmm_uvm
from rmm_uvm.dask.comm.staging import staging_for_frames
from rmm_uvm.dask.comm.statistics import totals

MIB = 1 << 20
SIZES = (1, 255, 256, 1000, MIB, 14 * MIB - 1, 14 * MIB + 1, 300 * MIB)
POOL = "64MiB"  # chunks of 14 MiB


_FILL = cupy.RawKernel(
    """
extern "C" __global__ void fill(unsigned char* bytes, unsigned long long count, unsigned seed) {
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count;
       i += (unsigned long long)gridDim.x * blockDim.x)
    bytes[i] = (unsigned char)((i * 2654435761ull + seed) >> 7);
}""",
    "fill",
)


def pattern(nbytes: int, seed: int) -> cupy.ndarray:
    """Return bytes that depend on their place and the seed, made on the default stream."""
    made = cupy.empty(nbytes, dtype=cupy.uint8)
    _FILL((256,), (256,), (made, cupy.uint64(nbytes), cupy.uint32(1000 * seed % 2**32)))
    return made


def is_pattern(array: cupy.ndarray, nbytes: int, seed: int) -> bool:
    """Return whether an array is what `pattern` makes."""
    return array.nbytes == nbytes and bool((array == pattern(nbytes, seed)).all())


def install(memory: str) -> None:
    """Install a managed pool, or RMM's pool over cudaMalloc memory."""
    if memory == "managed":
        rmm_uvm.reinitialize("2GiB", "4GiB", ipc_pool_size=POOL, monitor=False)
    else:
        pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 3 << 30, 3 << 30)
        rmm.mr.set_per_device_resource(0, pool)
        cupy.cuda.set_allocator(rmm_cupy_allocator)


def is_managed(array: cupy.ndarray) -> bool:
    """Return whether an array lies in managed memory."""
    kind: Any = staging_for_frames().copies.memory_kind(array.data.ptr)
    return bool(kind.managed)


def assert_whole() -> None:
    """Check that no chunk of this process is missing."""
    staging = staging_for_frames()
    staging.quarantine.collect()
    for budget in (staging.sending, staging.receiving):
        assert budget.free_count == budget.count > 0, (budget.free_count, budget.count)


async def _serve(addresses: Any, memory: str, protocol: str) -> None:
    """Answer requests: send back what comes, or send without end."""

    async def handler(comm: Any) -> None:
        with contextlib.suppress(CommClosedError):
            while True:
                request = await comm.read()
                if "totals" in request:
                    await comm.write(totals().to_dict())
                elif "install" in request:
                    install(memory)
                    await comm.write({"installed": True})
                elif "send" in request:
                    while True:
                        await comm.write({"data": to_serialize(pattern(request["send"], 1))})
                elif "swallow" in request:
                    while True:
                        await comm.read()
                else:
                    await comm.write({k: to_serialize(v) for k, v in request.items()})

    install(memory)
    listener = await listen(f"{protocol}://127.0.0.1:0", handler)
    addresses.put(listener.contact_address)
    await asyncio.Event().wait()


def _peer(addresses: Any, memory: str, protocol: str) -> None:
    _configure()
    asyncio.run(_serve(addresses, memory, protocol))


def _configure() -> None:
    dask.config.set({"distributed-ucxx.create-cuda-context": True})


@contextlib.asynccontextmanager
async def peer(
    memory: str = "managed", listening: str = "ucxuvm", connecting: str = "ucxuvm"
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a process that serves; yield a connection to it, and the process."""
    spawn = multiprocessing.get_context("spawn")
    addresses = spawn.Queue()
    process = spawn.Process(target=_peer, args=(addresses, memory, listening))
    here = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = here.split(",") if here else [str(n) for n in range(_device_count())]
    # As dask-cuda does: another device comes first, and all are visible.
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join([*devices[1:], devices[0]])
    try:
        process.start()
    finally:
        if here is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = here
    try:
        address = await asyncio.to_thread(addresses.get, timeout=100)
        comm = await connect(address.replace(f"{listening}://", f"{connecting}://"))
        yield comm, process
        await comm.close()
    finally:
        process.kill()
        process.join()
        addresses.close()


def _device_count() -> int:
    return int(cupy.cuda.runtime.getDeviceCount())


async def exchange(comm: Any, nbytes: int, seed: int, **others: Any) -> cupy.ndarray:
    """Send a pattern and get it back."""
    await comm.write({"data": to_serialize(pattern(nbytes, seed)), **others})
    data = (await comm.read())["data"]
    assert is_pattern(data, nbytes, seed), nbytes
    return data


async def _assert_moved(comm: Any, *, staged: int = 0, direct: int = 0, small: int = 0) -> None:
    """Check what both ends counted: so many bytes each way, pulled but for small messages."""
    await comm.write({"totals": True})
    for counted in (await comm.read(), totals().to_dict()):
        for way in ("sent", "received"):
            assert counted[f"{way}_staged_bytes"] == staged, counted
            assert counted[f"{way}_direct_bytes"] == direct, counted
            assert counted[f"{way}_overflow_bytes"] == 0, counted
        assert counted["pulled_bytes"] == 2 * (staged - small), counted
        assert counted["aborted_transfers"] == 0, counted


async def managed() -> None:
    """Managed frames of any size cross intact, all of them through the IPC pools."""
    install("managed")
    async with peer() as (comm, _):
        for seed, nbytes in enumerate(SIZES):
            data = await exchange(comm, nbytes, seed)
            assert is_managed(data)
            del data
        several = {str(n): to_serialize(pattern(n, n)) for n in (1, 70_000, 5 * MIB, 333)}
        await comm.write(several)
        for name, data in (await comm.read()).items():
            assert is_pattern(data, int(name), int(name))
        staged = sum(SIZES) + sum(map(int, several))
        await _assert_moved(comm, staged=staged, small=sum(SIZES[:4]))
    assert_whole()


async def renewed() -> None:
    """A slab is offered or mapped anew after one of both processes has made its pools anew."""
    install("managed")
    async with peer() as (comm, _):
        await exchange(comm, SIZES[-1], 1)
        install("managed")
        await exchange(comm, SIZES[-1], 2)
        await comm.write({"install": True})
        await comm.read()
        await exchange(comm, SIZES[-1], 3)
        await _assert_moved(comm, staged=3 * SIZES[-1])
        assert len(staging_for_frames().mappings) == 1
    assert len(staging_for_frames().mappings) == 0
    assert_whole()


async def plain() -> None:
    """Frames in cudaMalloc memory go directly."""
    install("plain")
    async with peer("plain") as (comm, _):
        assert comm.peer.receives == "direct", comm.peer
        for seed, nbytes in enumerate(SIZES):
            await exchange(comm, nbytes, seed)
        await _assert_moved(comm, direct=sum(SIZES))


async def mixed() -> None:
    """Managed frames go to a peer with cudaMalloc memory, and come back, staged at this end."""
    install("managed")
    async with peer("plain") as (comm, _):
        for seed, nbytes in enumerate(SIZES):
            data = await exchange(comm, nbytes, seed)
            assert is_managed(data)
    counted = totals()
    assert counted.sent_staged_bytes == counted.received_staged_bytes == sum(SIZES), counted
    assert counted.sent_overflow_bytes == counted.received_overflow_bytes == 0, counted
    assert_whole()


async def stock_listens() -> None:
    """Ours talks to a stock end with cudaMalloc memory: intact, and counted as overflow."""
    install("managed")
    async with peer("plain", "ucx", "ucxuvm") as (comm, _):
        assert not comm.peer.ours
        for seed, nbytes in enumerate(SIZES[:-1]):
            await exchange(comm, nbytes, seed)
    assert totals().sent_overflow_bytes == sum(SIZES[:-1]), totals()


async def stock_connects() -> None:
    """A stock end with cudaMalloc memory talks to ours."""
    install("plain")
    async with peer("managed", "ucxuvm", "ucx") as (comm, _):
        for seed, nbytes in enumerate(SIZES[:-1]):
            await exchange(comm, nbytes, seed)


async def ordered() -> None:
    """Frames are read after the kernels that make them, and written after those that used them."""
    install("managed")
    nbytes = 64 * MIB
    async with peer() as (comm, _):
        for seed in range(5):
            data = pattern(nbytes, seed)
            for _ in range(50):
                data += cupy.uint8(1)
            # Not synchronised: the last of the kernels are still queued.
            await comm.write({"data": to_serialize(data)})
            # What comes back is received into memory that kernels have yet to write to.
            scratch = cupy.zeros(nbytes, dtype=cupy.uint8)
            for _ in range(50):
                scratch += cupy.uint8(3)
            del scratch
            back = (await comm.read())["data"]
            assert bool((back == pattern(nbytes, seed) + cupy.uint8(50)).all()), seed
    assert_whole()


async def evicted() -> None:
    """Frames whose pages are on the host are staged all the same."""
    install("managed")
    nbytes = 64 * MIB
    installation = rmm_uvm.current_installation()
    assert installation is not None
    async with peer() as (comm, _):
        data = pattern(nbytes, 7)
        cupy.cuda.get_current_stream().synchronize()
        driver = installation.managed_mr.driver
        driver.prefetch(data.data.ptr, nbytes, "host")
        driver.synchronize()
        await comm.write({"data": to_serialize(data)})
        assert is_pattern((await comm.read())["data"], nbytes, 7)
        await _assert_moved(comm, staged=nbytes)
    assert_whole()


async def both_directions() -> None:
    """Large messages in both directions at once, on several connections, all arrive."""
    install("managed")
    nbytes = 128 * MIB
    async with peer() as (comm, _):
        address = comm.peer_address
        comms = [comm, *[await connect(address) for _ in range(3)]]

        async def call(each: Any, seed: int) -> None:
            for _ in range(3):
                await exchange(each, nbytes, seed)

        async with asyncio.timeout(100):
            await asyncio.gather(*(call(each, seed) for seed, each in enumerate(comms)))
        await _assert_moved(comm, staged=4 * 3 * nbytes)
        for each in comms[1:]:
            await each.close()
    assert_whole()


async def _killed(request: str) -> None:
    install("managed")
    nbytes = 512 * MIB
    staging_for_frames().quarantine.seconds = 0.05
    for _ in range(2):
        async with peer() as (comm, process):
            await comm.write({request: nbytes})

            async def transfer(comm: Any = comm) -> None:
                while True:
                    if request == "send":
                        assert is_pattern((await comm.read())["data"], nbytes, 1)
                    else:
                        await comm.write({"data": to_serialize(pattern(nbytes, 1))})

            transferring = asyncio.create_task(transfer())
            enough = _moved_bytes() + nbytes // 2
            while _moved_bytes() < enough:
                assert not transferring.done(), transferring
                await asyncio.sleep(0)
            os.kill(process.pid, signal.SIGKILL)
            try:
                async with asyncio.timeout(100):
                    await transferring
            except CommClosedError:
                pass
            else:
                raise AssertionError("a transfer with a dead peer ended well")
            while len(staging_for_frames().quarantine):
                await asyncio.sleep(0.01)
            assert_whole()
    # The first one's chunks are good for the next peer.
    before = totals().sent_overflow_bytes + totals().received_overflow_bytes
    async with peer() as (comm, _):
        await exchange(comm, nbytes, 3)
    assert totals().sent_overflow_bytes + totals().received_overflow_bytes == before, totals()
    assert totals().aborted_transfers == 2, totals()
    assert_whole()


def _moved_bytes() -> int:
    return totals().sent_staged_bytes + totals().received_staged_bytes


async def killed_sender() -> None:
    """A peer is killed while it sends: this end says so, and goes on with others."""
    await _killed("send")


async def killed_receiver() -> None:
    """A peer is killed while it receives."""
    await _killed("swallow")


def main() -> None:
    """Run the program that is named."""
    _configure()
    asyncio.run(globals()[sys.argv[1]]())


if __name__ == "__main__":
    main()
