# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of an IPC pool, opened and copied by another process, against cudaMemcpyPeer in one.

    RMM_UVM_MANAGED_LIMIT=1GiB python benchmarks/cluster/ipc_copy.py --json FILE

This process exports from GPU 0 and sends the handles through a pipe; another one
(``ipc_reader.py``) opens the buffers as they come and copies them to GPU 1, or to GPU 0 where
there is one only, which the result says. Its time runs from the wish for them until the last is
copied and closed: exporting and the pipe are in it. The baseline is cudaMemcpyPeerAsync with peer
access in the reader, between buffers of its own. 1 GiB is one buffer; 64 MiB is sixteen buffers,
one behind the other, as a program sends what it has in pieces, and, without a bound, one alone.
3 GiB of cudaMalloc memory in all, no managed memory.

``--simulated`` runs the same program without a GPU, on 64 MiB in all, against a plain copy: for the
cost of opening.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.ipc import IpcPool

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

READER = Path(__file__).with_name("ipc_reader.py")
PIECES = 16
LEAST_FRACTION = 0.9
MOST_OPEN_MICROSECONDS = 20.0


class Reader:
    """The other process."""

    def __init__(self, device_id: int, total_bytes: int, *, simulated: bool) -> None:
        command = [sys.executable, str(READER), str(device_id), str(total_bytes)]
        self.process = subprocess.Popen(
            command + ["--simulated"] * simulated,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()

    def answer(self) -> Any:
        """Return what it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the reading process has ended")
        return json.loads(line)

    def tell(self, line: str) -> None:
        """Send it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, *told: Any) -> Any:
        """Tell it what to do; return what it answers."""
        self.tell(json.dumps(told))
        return self.answer()


class Part:
    """A part of a buffer, as an array of bytes."""

    def __init__(self, buffer: rmm.DeviceBuffer, offset: int, nbytes: int) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (buffer.ptr + offset, False),
            "version": 3,
        }


def shared(
    pool: IpcPool, reader: Reader, buffer: rmm.DeviceBuffer, nbytes: int, count: int
) -> float:
    """Export a buffer in so many parts, and have them read; return the reader's seconds."""
    reader.tell(json.dumps(["copy", count]))
    for number in range(count):
        reader.tell(pool.export(Part(buffer, number * nbytes, nbytes)).hex())
    return float(reader.answer())


def fill(buffer: rmm.DeviceBuffer, content: bytes, *, simulated: bool) -> None:
    """Write bytes at the beginning and at the end of a buffer."""
    source = ctypes.create_string_buffer(content, len(content))
    for address in (buffer.ptr, buffer.ptr + buffer.size - len(content)):
        if simulated:
            ctypes.memmove(address, source, len(content))
        else:
            from cuda.bindings import runtime

            kind = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
            host = ctypes.addressof(source)
            (error,) = runtime.cudaMemcpy(address, host, len(content), kind)
            if int(error) != 0:
                raise SystemExit(f"cudaMemcpy answered {error!r}")


def right(reader: Reader, buffer: rmm.DeviceBuffer, content: bytes) -> bool:
    """Whether the reader has those bytes where it copied them to."""
    ends = (0, buffer.size - len(content))
    return all(reader.ask("read", offset, len(content)) == content.hex() for offset in ends)


def cached_open(pool: IpcPool, reader: Reader, buffer: rmm.DeviceBuffer) -> dict[str, float]:
    """Return what opening a handle costs when the slab is mapped already, in microseconds."""
    handle = pool.export(buffer, readers=1000).hex()
    seconds = sorted(reader.ask("open", handle, 1000))
    return {
        "median": statistics.median(seconds) * 1e6,
        "p90": seconds[int(len(seconds) * 0.9)] * 1e6,
        "least": seconds[0] * 1e6,
    }


def second_device(*, simulated: bool) -> int:
    """Return the ordinal of the GPU that reads."""
    if simulated:
        return 0
    from cuda.bindings import runtime

    return min(1, int(runtime.cudaGetDeviceCount()[1]) - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    simulated: bool = arguments.simulated
    if simulated:
        os.environ["RMM_UVM_DRIVER"] = "simulated"
        driver: Any = rmm_uvm.simulated_device("4GiB", backing=True)
    else:
        driver = rmm_uvm.cuda_driver(0)
        harness.require_managed_limit(driver.memory()[0])
    total_bytes = 64 << 20 if simulated else 1 << 30
    device_id = second_device(simulated=simulated)
    pool = rmm_uvm.ipc_pool(total_bytes, driver=driver)
    buffer = rmm.DeviceBuffer(size=total_bytes, mr=pool)
    whole, part = total_bytes, total_bytes // PIECES
    reader = Reader(device_id, total_bytes, simulated=simulated)
    try:
        begin = time.perf_counter()
        reader.ask("open", pool.export(buffer).hex(), 1)
        first_open = time.perf_counter() - begin
        contents = []
        for name, count in ((b"whole", 1), (b"parts", PIECES)):
            content = name * 1000
            fill(buffer, content, simulated=simulated)
            shared(pool, reader, buffer, total_bytes // count, count)
            contents.append(right(reader, buffer, content))
        opening = cached_open(pool, reader, buffer)
        runs: dict[str, Callable[[], float]] = {}
        for name, nbytes, count in (
            ("one buffer", whole, 1),
            (f"{PIECES} buffers", part, PIECES),
            ("a small one alone", part, 1),
        ):
            runs[f"ipc, {name}"] = functools.partial(shared, pool, reader, buffer, nbytes, count)
            runs[f"peer, {name}"] = functools.partial(reader.ask, "baseline", nbytes, count)
        seconds = harness.interleaved(runs, arguments.rounds)
    finally:
        reader.process.kill()
        reader.process.wait()
    verdicts = {
        f"peer / ipc, one buffer of {whole >> 20} MiB": harness.judged_at_least(
            harness.ratio(seconds, "peer, one buffer", "ipc, one buffer"), LEAST_FRACTION
        ),
        f"peer / ipc, {PIECES} buffers of {part >> 20} MiB": harness.judged_at_least(
            harness.ratio(seconds, f"peer, {PIECES} buffers", f"ipc, {PIECES} buffers"),
            LEAST_FRACTION,
        ),
        "cached open, microseconds": harness.judged_at_most(
            opening["median"], MOST_OPEN_MICROSECONDS
        ),
        "contents right": all(contents),
    }
    medians = harness.medians(seconds)
    results = {
        "reading_device": device_id,
        "total_bytes": total_bytes,
        "seconds": seconds,
        "medians": medians,
        "gigabytes_per_second": {
            name: (part if name.endswith("alone") else whole) / value / 1e9
            for name, value in medians.items()
        },
        "cached_open_microseconds": opening,
        "first_open_seconds": first_open,
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "ipc_copy", results)
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
