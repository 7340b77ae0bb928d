# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the corpus: one small input for each thing that a reader knows.

    PYTHONPATH=tests python -P -m fuzz.make_corpus [FOLDER]

Inputs that fuzzing found are kept beside them under names of their own.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from rmm_uvm.dask.comm.wire import (
    WIRE_VERSION,
    ChunkName,
    FrameKind,
    SlabOffer,
    pack_answer,
    pack_done,
    pack_header,
    pack_offer,
    pack_opening,
    pack_prelude,
    pack_ready,
)
from rmm_uvm.ipc.handle import Handle
from rmm_uvm_mortgage.schema import CLOSED_DOMAINS, OPEN_DOMAINS

from .categories_target import FILES
from .make_shared import shared_seeds
from .payload import END, EVENTS, SAMPLES, Payload, raw_trace, unframed

CORPUS = Path(__file__).resolve().parent / "corpus"
GROWN = CORPUS.with_name("grown")  # what `fuzz.keep` kept of what fuzzing found beyond the seeds
# Of the machine on which it grew: comparisons put texts of the program into inputs.
FOREIGN = re.compile(rb"/(home|root|tmp|work|mnt|Users|var|usr)/|site-packages")
_BASE = 0x7F00_0000_0000
_MIB = 1 << 20
_MOST_BYTES = 4096


def seeds() -> dict[str, dict[str, bytes]]:
    """Return the contents of every seed, by target and name."""
    traces = _traces()
    framed = {name: unframed(*parts) for name, parts in traces.items()}
    raw = {name: raw_trace(*parts) for name, parts in traces.items()}
    logs = _logs()
    workloads = {f"trace-{name}": b"t" + data for name, data in framed.items()}
    workloads |= {f"log-{name}": b"l" + data for name, data in logs.items()}
    workloads["gzip-trace"] = b"g" + gzip.compress(raw["stages"], mtime=0)
    workloads["gzip-cut-off"] = workloads["gzip-trace"][:-20]
    return {
        "trace": framed,
        "trace-bytes": {**raw, "gzip": gzip.compress(raw["plain"], mtime=0)},
        "rmm-log": logs,
        "workload": workloads,
        "machine": _machines(),
        "handle": _handles(),
        "dask-settings": _sections(),
        "environment": _environments(),
        "categories": _categories(),
        "wire-message": _messages(),
        "wire-handshake": _introductions(),
        **shared_seeds(),
    }


def main(folder: Path) -> None:
    """Write them."""
    for target, files in seeds().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            if len(data) >= _MOST_BYTES:
                raise ValueError(f"{target}/{name} has {len(data)} bytes")
            (folder / target / name).write_bytes(data)


def _traces() -> dict[str, tuple[bytes, list[tuple[int, bytes]]]]:
    """Return facts and chunks by name."""
    facts = {
        "began": "2026-01-01T00:00:00+00:00",
        "pid": 1,
        "devices": [{"device_id": 0, "name": "GPU", "total_bytes": 1 << 34}],
        "settings": {"prefetch": "auto"},
    }
    described = json.dumps(facts).encode()
    end = (END, b"\0")
    plain = Payload().context(0, device=0, stream=7, thread=1)
    plain.allocate(_BASE, _MIB).allocate(_BASE + _MIB, 1000).free(2).allocate_again(2)
    later = Payload().context(0, device=0, stream=7, thread=1)
    later.free_at(_BASE, _MIB).free_at(_BASE + 2 * _MIB, 64).allocate(_BASE, 4096)
    touches = Payload().context(0, device=0, stream=7, thread=1)
    touches.allocate(_BASE, _MIB).touch(_BASE, _MIB, 1).touch(_BASE, 4096, 2).free(1)
    devices = Payload().context(0, device=0, stream=7, thread=1).allocate(_BASE, _MIB)
    devices.context(1, device=1, stream=7, thread=1).allocate(_BASE, 64)
    stages = Payload().context(0, device=0, stream=7, thread=1).begin("etl", "main")
    stages.allocate(_BASE, _MIB, ticks=5).annotate("remark").free(1, ticks=5).end(ticks=1)
    kernels = Payload().context(0, device=0, stream=7, thread=1).allocate(_BASE, _MIB)
    kernels.kernel("fill").touch(_BASE, _MIB, 1, ticks=0).kernel("add").touch(_BASE, 64, 0, ticks=0)
    overlap = Payload().context(0, device=0, stream=7, thread=1)
    overlap.allocate(_BASE, _MIB).allocate(_BASE + 4096, 64)
    other_size = Payload().context(0, device=0, stream=7, thread=1)
    other_size.allocate(_BASE, _MIB).free_at(_BASE, 64)
    sample = b"\1\0\x07\2\4\6"  # one row of device 0, three fields
    return {
        "plain": (described, [(EVENTS, plain.bytes), (EVENTS, later.bytes), end]),
        "touches": (b"{}", [(EVENTS, touches.bytes), end]),
        "devices": (b"{}", [(EVENTS, devices.bytes), end]),
        "stages": (described, [(EVENTS, stages.bytes), (SAMPLES, sample), end]),
        "kernels": (b"{}", [(EVENTS, kernels.bytes), end]),
        "overlap": (b"{}", [(EVENTS, overlap.bytes), end]),
        "other-size": (b"{}", [(EVENTS, other_size.bytes), end]),
        "dropped-and-unknown": (b"{}", [(77, b"later"), (EVENTS, plain.bytes), (END, b"\5")]),
        "no-end": (b"{}", [(EVENTS, plain.bytes)]),
    }


def _logs() -> dict[str, bytes]:
    whole = (
        b"1,10:00:00.000001,allocate,0x7f0000000000,1048576,0x0\n"
        b"1,10:00:00.000002,allocate,0x7f0000100000,1000,0x2\n"
        b"2,10:00:00.000001,free,0x7f0000000000,1048576,0x0\n"
        b"1,10:00:00.000009,allocate failure,(nil),99999999999,0\n"
    )
    return {
        "whole": whole,
        "middle": b"1,23:59:59.999999,free,0x7f0000200000,64,0\n" + whole,
        "midnight": b"1,23:59:59.999999,allocate,0x100,8,0\n1,00:00:00:000001,free,0x100,8,0\r\n",
        "rubbish": b"rubbish\n\n" + whole + b"1,25:00:00.000001,free,0x100,8,0\n" + whole[:30],
        "overlap": whole + b"1,10:00:01.000000,allocate,0x7f0000100100,8,0\n",
        "empty": b"",
    }


def _machines() -> dict[str, bytes]:
    folder = resources.files("rmm_uvm") / "simulator" / "machines"
    found = {}
    for name in ("uvm-smart", "h200-pcie5"):
        lines = (folder / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        # Sources are long, and no reader looks into them.
        short = ['source = "a paper"' if line.startswith("source") else line for line in lines]
        whole = "\n".join(line for line in short if line and not line.startswith("#"))
        found[name] = whole.encode()
        found[f"{name}-half"] = found[name][: len(whole) // 2]
    facts = 'name = "n"\ngpu = "g"\nlink = "l"'
    found["no-constants"] = f"[machine]\n{facts}\nmeasured = true\n[constants]\n".encode()
    # Of more digits than Python prints.
    found["huge-number"] = f"[machine]\n{facts}\nmeasured = 0x{'f' * 3600}\n".encode()
    return found


def _handles() -> dict[str, bytes]:
    handle = Handle(
        simulated=True,
        machine=bytes(16),
        device=bytes(16),
        table=bytes(16),
        slot=0,
        generation=1,
        expires_ns=0,
        slab_bytes=4096,
        offset=256,
        nbytes=48,
        slab_handle=bytes(64),
        event_handle=bytes(64),
        typestr="<f4",
        shape=(3, 4),
    )
    return {
        "whole": handle.pack(),
        "body": handle.pack()[:-4],
        "scalar": handle._replace(shape=(), nbytes=4).pack(),
        "long-type": handle.pack()[:-4] + b"<f4" * 300,
        "outside": handle._replace(offset=4090).pack()[:-4],
    }


def _sections() -> dict[str, bytes]:
    sections = {
        "sizes": {"initial-pool-size": 0.5, "maximum-pool-size": "64GiB", "ipc-pool-size": "auto"},
        "words": {"prefetch": "always", "libraries": ["cupy", "torch"], "cudf_prefetch": True},
        "monitor": {"monitor": {"interval": 0.5}, "thresholds": {"oversubscription_factor": 1.5}},
        "driver": {"driver": "simulated:64MiB", "workers-per-host": 2, "protocol": "tcp"},
        "comm": {"comm": {"chunk-size": "1MiB", "wait-seconds": 3}},
        "wrong": {"prefetch": 7, "no-such": None},
        "long": {"prefetch": "always" * 300},
        "huge-threshold": {"thresholds": {"host_memory_fraction": 10**400}},
        "huge-wait": {"comm": {"wait-seconds": 10**400}},
    }
    return {name: json.dumps(section).encode() for name, section in sections.items()}


def _environments() -> dict[str, bytes]:
    texts = {
        "sizes": ("24GiB", "12 GiB", "lru", "auto", "1GiB", "2", "0.5", "on", "60"),
        "fractions": ("1e9", "0.5", "", "1,2", "", "1.5", "off", "off", "0"),
        "none": ("", "", "", "none"),
        "wrong": ("all", "1", "random", "1,1", "1MiB", "-1", "nan", "maybe", "inf"),
        "budget-alone": ("", "8MiB"),
        "policy-alone": ("", "", "fifo"),
        # Python makes no number of so many digits.
        "long-ordinal": ("", "1GiB", "", "9" * 4090),
        "drivers": (*[""] * 9, "simulated:64MiB", "off", "0.01", "2", "0.1", "off", "off"),
        "named-drivers": (*[""] * 9, "cuda", "on", "off", "off", "off", "1", "on"),
        "slips": (*[""] * 16, "MANAGED_LIMT", "EVICTION\x1b[2J", "DEVICE_BUDGE\x7f", "COUNTERS_"),
        "wrong-drivers": (*[""] * 9, "simulated:1MiB", "yes", "0", "-1", "inf", "1e400", "none"),
    }
    return {name: "\n".join(lines).encode()[:4095] for name, lines in texts.items()}


def _opening(
    kinds: list[FrameKind], sizes: list[int], frames: bytes, chunk_bytes: int = 0
) -> bytes:
    entries, header = pack_header(kinds, sizes, chunk_bytes)
    return pack_opening(pack_prelude(closing=False, entries=entries), header, [frames])


def _messages() -> dict[str, bytes]:
    host, device, stream = FrameKind.HOST, FrameKind.DEVICE, FrameKind.STREAM

    def message(
        kinds: list[FrameKind],
        sizes: list[int],
        chunk_bytes: int = 0,
        way: FrameKind = FrameKind.CHUNK,
    ) -> bytes:
        entries, header = pack_header(kinds, sizes, chunk_bytes, way)
        return pack_prelude(closing=False, entries=entries) + header

    return {
        "host-frames": message([host] * 3, [3, 0, 5]) + b"headframe",
        "device-frame": message([host, device], [4, 1 << 20]) + b"head",
        "stream": message([host, stream, stream], [4, 5000, 1], 4096) + b"head",
        "closing": pack_prelude(closing=True, entries=0),
        "many-entries": pack_prelude(closing=False, entries=10**9),
        "most-entries": pack_prelude(closing=False, entries=1 << 22),
        "near-2-to-the-64": message([host, device], [2**64 - 1, 2**64 - 2]),
        "larger-than-the-host": message([host], [1 << 40]),
        "small-chunks": message([stream], [1 << 46], 256),
        "cut-off": message([host], [100])[:20],
        "opening": _opening([host] * 3, [3, 0, 5], b"headframe"),
        "opening-of-a-stream": _opening([host, stream], [4, 5000], b"head", 4096),
        "pulled": message([host, stream], [4, 5000], 4096, FrameKind.PULL) + b"head",
        "offered": message([stream], [5000], 4096, FrameKind.OFFER),
        "offer": pack_offer(SlabOffer(bytes(16), b"p" * 16, b"s" * 16, b"h" * 64, 1 << 28)),
        "ready-to-pull": pack_ready(ChunkName(1 << 20, 7)),
        "ready-and-sent": pack_ready(None),
        "done": pack_done(ChunkName(1 << 20, 7)),
        "answer": pack_answer(pulls=True),
        "cut-opening": _opening([host] * 2, [3, 5], b"headfram")[:-1],
    }


def _introductions() -> dict[str, bytes]:
    whole = {"wire": WIRE_VERSION, "version": "0.1.0", "chunk_bytes": 1 << 20, "receives": "staged"}
    contents: dict[str, Any] = {
        "staged": whole,
        "host": {**whole, "chunk_bytes": None, "receives": "host"},
        "other-version": {**whole, "wire": WIRE_VERSION + 1, "version": "9\x1b[2J" * 50},
        "small-chunks": {**whole, "chunk_bytes": -256},
        "elsewhere": {**whole, "receives": ["staged"]},
        "number": 1,
    }
    return {name: json.dumps(told).encode() for name, told in contents.items()}


def _categories() -> dict[str, bytes]:
    domains = {name: ["A", "B"] for name in (*CLOSED_DOMAINS, *OPEN_DOMAINS)}
    whole = {"file_bytes": dict.fromkeys(FILES, 1), "domains": domains}
    first = min(domains)
    contents: dict[str, Any] = {
        "whole": whole,
        "no-sizes": {**whole, "file_bytes": [1]},
        "another-size": {**whole, "file_bytes": dict.fromkeys(FILES, 2)},
        "missing": {**whole, "domains": {first: []}},
        "not-sorted": {**whole, "domains": {**domains, first: ["B", "A"]}},
        "numbers": {**whole, "domains": {**domains, first: [1, 2]}},
        "numbers-and-names": {**whole, "domains": {**domains, first: ["A", 1]}},
        "lists": {**whole, "domains": {**domains, first: [["A"], ["B"]]}},
        "text": {**whole, "domains": {**domains, first: "AB"}},
        "no-object": [whole],
    }
    return {name: json.dumps(told).encode() for name, told in contents.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS)
