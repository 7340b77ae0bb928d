# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Why staging chunks have the size that they have: UCX between two GPUs, by message size.

    python benchmarks/cluster/message_size.py --json FILE

Two processes, a GPU each, 1 GiB of cudaMalloc memory (no managed memory), sent in messages of one
size: one after the other, four under way, and four under way with a small "ready" message before
each, as `rmm_uvm.dask.comm` does. Beside it, what the receiver reaches when it copies straight out
of the sender's exported memory: the bound of the link.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

TOTAL_BYTES = 1 << 30
SIZES_MIB = (1024, 64, 32, 16, 8, 4, 1)
WAYS = {"one by one": (1, False), "four under way": (4, False), "four, made ready": (4, True)}
ROUNDS = 9
_READY_BYTES = 8


class _Slice:
    """A piece of device memory, as UCX takes it."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _device_memory() -> Any:
    import rmm

    rmm.reinitialize(pool_allocator=True, initial_pool_size=2 * TOTAL_BYTES)
    return rmm.DeviceBuffer(size=TOTAL_BYTES)


def _slices(memory: Any, size_mib: int) -> list[_Slice]:
    step = size_mib << 20
    return [_Slice(memory.ptr + begin, step) for begin in range(0, TOTAL_BYTES, step)]


async def _pipeline(messages: list[Awaitable[Any]], depth: int) -> None:
    """Keep `depth` messages under way, begun in order."""
    under_way: list[asyncio.Future[Any]] = []
    for message in messages:
        under_way.append(asyncio.ensure_future(message))
        await asyncio.sleep(0)  # begins it: UCX matches messages in the order of their begin
        if len(under_way) >= depth:
            await under_way.pop(0)
    for one in under_way:
        await one


async def _send(endpoint: Any, memory: Any, size_mib: int, depth: int, *, ready: bool) -> None:
    messages: list[Any] = []
    for number, piece in enumerate(_slices(memory, size_mib)):
        if ready and number:
            messages.append(endpoint.send(bytearray(_READY_BYTES)))
        messages.append(endpoint.send(piece))
    await _pipeline(messages, 2 * depth if ready else depth)


async def _receive(endpoint: Any, memory: Any, size_mib: int, depth: int, *, ready: bool) -> None:
    under_way: list[asyncio.Future[Any]] = []
    for number, piece in enumerate(_slices(memory, size_mib)):
        if ready and number:
            await endpoint.recv(bytearray(_READY_BYTES))
        under_way.append(asyncio.ensure_future(endpoint.recv(piece)))
        await asyncio.sleep(0)
        if len(under_way) >= depth:
            await under_way.pop(0)
    for one in under_way:
        await one


async def _serve() -> None:
    """Answer rounds until the other side is done."""
    import ucxx

    memory, done = _device_memory(), asyncio.Event()

    async def answer(endpoint: Any) -> None:
        for size_mib in SIZES_MIB:
            for depth, ready in WAYS.values():
                for _ in range(ROUNDS):
                    await endpoint.recv(bytearray(_READY_BYTES))
                    await _send(endpoint, memory, size_mib, depth, ready=ready)
        from cuda.bindings import driver as cuda

        _, base, _ = cuda.cuMemGetAddressRange(memory.ptr)
        _, handle = cuda.cuIpcGetMemHandle(base)
        await endpoint.send(bytearray(bytes(handle.reserved)))
        await endpoint.send(bytearray((memory.ptr - int(base)).to_bytes(_READY_BYTES, "little")))
        await endpoint.recv(bytearray(_READY_BYTES))
        done.set()

    listener = ucxx.create_listener(answer)
    print(f"port {listener.port}", flush=True)
    await done.wait()


async def _measure(port: int) -> dict[str, Any]:
    import ucxx

    memory = _device_memory()
    endpoint = await ucxx.create_endpoint(ucxx.get_address(), port)
    seconds: dict[str, dict[str, float]] = {}
    for size_mib in SIZES_MIB:
        seconds[f"{size_mib} MiB"] = row = {}
        for name, (depth, ready) in WAYS.items():
            taken = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                await endpoint.send(bytearray(_READY_BYTES))
                await _receive(endpoint, memory, size_mib, depth, ready=ready)
                taken.append(time.perf_counter() - begin)
            row[name] = statistics.median(taken[2:])
    handle, offset = bytearray(64), bytearray(_READY_BYTES)
    await endpoint.recv(handle)
    await endpoint.recv(offset)
    pulled = _pull(bytes(handle), int.from_bytes(offset, "little"), memory)
    await endpoint.send(bytearray(_READY_BYTES))
    return {"seconds_for_1_gib": seconds, "seconds_copied_from_exported_memory": pulled}


def _pull(handle: bytes, offset: int, memory: Any) -> float:
    """Copy out of the exported memory; return the median seconds."""
    from cuda.bindings import driver as cuda

    exported = cuda.CUipcMemHandle()
    exported.reserved = handle
    error, base = cuda.cuIpcOpenMemHandle(exported, 1)
    if error != cuda.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"the sender's memory cannot be opened: {error}")
    _, stream = cuda.cuStreamCreate(1)
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        cuda.cuMemcpyAsync(memory.ptr, int(base) + offset, TOTAL_BYTES, stream)
        cuda.cuStreamSynchronize(stream)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(_serve())
        return
    other = subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "1,0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None
        # UCX writes its own warnings to standard output.
        line = next(line for line in other.stdout if line.startswith("port "))
        results = asyncio.run(_measure(int(line.split()[1])))
    finally:
        other.kill()
        other.wait()
    results["gb_per_second"] = {
        size: {way: round(TOTAL_BYTES / s / 1e9, 1) for way, s in row.items()}
        for size, row in results["seconds_for_1_gib"].items()
    }
    if arguments.json:
        harness.write_json(arguments.json, "message_size", results)


if __name__ == "__main__":
    main()
