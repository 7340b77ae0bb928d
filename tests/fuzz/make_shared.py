# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Seeds of what processes share: recordings, boards of figures, the harvest board, lease tables."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.as_json import plain
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE

from . import lease_target, slow_board
from .harvest_target import STEP

_GIB = 1 << 30
_ALL_KNOWN = 63


def shared_seeds() -> dict[str, dict[str, bytes]]:
    """Return the contents of every seed, by target and name."""
    return {
        "recording": _recordings(),
        "board": _boards(),
        "harvest-board": _harvests(),
        "lease-table": _leases(),
    }


def _recorded(**changes: Any) -> Recording:
    samples = np.zeros(3, SAMPLE_DTYPE)
    samples["time_ns"] = (1 * 10**8, 2 * 10**8, 4 * 10**8)
    for name in ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate"):
        samples[name] = (0, _GIB, 3 * _GIB)
    samples["footprint_bytes"] = samples["resident_bytes"] = (_GIB, 3 * _GIB, 2 * _GIB)
    samples["known"] = _ALL_KNOWN
    return Recording(
        samples=samples,
        devices=(RecordedDevice(0, "GPU", "GPU-0", 2 * _GIB, 2 * _GIB, chain=("Pool",)),),
        **{"began": "2026-01-01T00:00:00Z", "interval_seconds": 0.1, **changes},
    )


def _handed_over(kind: bytes, recording: Recording, **changes: Any) -> bytes:
    told = {**plain(recording), **changes}
    del told["layout"]  # the target knows it
    if kind in (b"w", b"c"):
        told = {"comm": {"sent_overflow_bytes": 5.0}, "samples_total": 9, "recording": told}
    return kind + json.dumps(told).encode() + b"\0" + recording.samples.tobytes()


def _recordings() -> dict[str, bytes]:
    plain_one = _recorded()
    stages = (Stage("etl", 0.0, 0.3, 0, "main"), Stage("train", 0.3, math.nan, 1, "main"))
    finding = Finding("eviction", 0, 0.2, 2.0, 1.0, "it evicts", "use less")
    columns = ["time_seconds", "device_id", "device_to_host_eviction_bytes"]
    told = _recorded(
        stages=stages,
        findings=(finding, finding),
        sources={"nvml": Availability(available=False, reason="no NVML")},
        causes={"columns": columns, "rows": [[0.1, 0, 0], [0.4, 0, _GIB]]},
        busiest=((4096, 1, 2),),
        settings={"peak_live_bytes": "5"},
        versions={"rmm": "26.10"},
    )
    budget = {name: 1 for name in _BUDGET} | {"last_failure": "", "foresees": True}
    return {
        "plain": _handed_over(b"r", plain_one),
        "told": _handed_over(b"r", told),
        "page": _handed_over(b"h", told),
        "budget": _handed_over(b"r", plain_one, budgets={"0": budget}),
        "worker": _handed_over(b"w", told),
        "cluster": _handed_over(b"c", plain_one),
        "nothing": _handed_over(b"r", Recording(np.zeros(0, SAMPLE_DTYPE), ())),
        "no-recording": b'w{"reason": "no reason"}',
        # What each of these made a report fail with, or tell falsely, is mended.
        "size-of-text": _handed_over(b"r", plain_one, devices=[_device(total_bytes="2GiB")]),
        "time-of-text": _handed_over(b"r", plain_one, stages=[{**_STAGE, "begin_seconds": "0"}]),
        "huge-size": _handed_over(b"r", plain_one, devices=[_device(capacity_bytes=10**400)]),
        "huge-peak": _handed_over(b"r", plain_one, settings={"peak_live_bytes": "9" * 1500}),
        "no-number": _handed_over(b"r", plain_one, cost_seconds=math.inf),
        "began-clears": _handed_over(b"r", plain_one, began="\x1b[2J\ud800"),
        "causes-short": _handed_over(b"r", told, causes={"columns": columns, "rows": [[0.1]]}),
        "reason-of-number": b'w{"reason": 5}',
    }


_STAGE = {"name": "etl", "begin_seconds": 0.0, "end_seconds": 1.0, "depth": 0, "thread": "main"}
_BUDGET = (
    *("budget_bytes", "resident_bytes", "peak_resident_bytes", "pinned_bytes", "evicted_bytes"),
    *("dropped_bytes", "fetched_bytes", "renewed_bytes", "fetched_ahead_bytes"),
    *("ahead_used_bytes", "wanted_bytes", "present_bytes", "eviction_calls", "waits"),
    *("over_budget", "too_large", "too_large_bytes", "unfenced_frees", "failed_calls"),
    *("predicted", "predictions", "switched_off"),
)


def _device(**changes: Any) -> dict[str, Any]:
    facts = {"device_id": 0, "name": "GPU", "uuid": "GPU-0", "total_bytes": 1, "capacity_bytes": 1}
    return {**facts, **changes}


def _boards() -> dict[str, bytes]:
    figures = {"device_id": 0, "time_ns": 10**9, "footprint_bytes": 5 * _GIB, "gpu_faults": 3}
    figures |= {"host_to_device_bytes": 0, "device_to_host_bytes": 0, "capacity_bytes": _GIB}
    later = {**figures, "time_ns": 2 * 10**9, "host_to_device_bytes": _GIB, "gpu_faults": 9}
    budget = {"budget_bytes": _GIB, "overshoot_bytes": 0, "peak_harvested_bytes": _GIB}

    def looks(*snapshots: Any, **facts: Any) -> bytes:
        return b"\0".join(json.dumps({"snapshots": [one], **facts}).encode() for one in snapshots)

    return {
        "one": looks(figures),
        "two-looks": looks(figures, later),
        "began-anew": looks(later, figures),
        "budget": looks({**figures, "budget": budget, "simulated": True}),
        "names": looks(figures, command="python \x1b[2J\ud800.py", findings=["full"], sources={}),
        "another-process": looks(figures, pid=1),
        "another-version": looks(figures, version=2),
        "no-object": b"[1]\0null",
        "empty": b"",
        # What each of these did to all that `top` shows is mended.
        "device-of-text": looks({**figures, "device_id": "first"}),
        "size-of-text": looks({**figures, "footprint_bytes": "5GiB"}),
        "total-of-list": looks(figures, {**later, "host_to_device_bytes": []}),
        "huge-total": looks(figures, {**later, "host_to_device_bytes": 10**400}),
        "no-number": looks({**figures, "time_ns": math.nan}, published_seconds=math.inf),
        "budget-of-text": looks({**figures, "budget": {"budget_bytes": "all"}}),
    }


def _harvests() -> dict[str, bytes]:
    header = struct.pack("<4Q", *slow_board.HEADER, slow_board.BYTES, 1)
    offers, claims = 104, slow_board.CLAIMS
    device = ((3, 1), (8, 5), (9, 6))  # one row, and its UUID
    offer, busy, most = 1 << 63, 1 << 62, 2**64 - 1
    claim, others = (0, 0, 4 * _GIB, 80 * _GIB, _GIB), (0, 99, _GIB, 2 * _GIB, 0)

    def patched(*words: tuple[int, int], steps: tuple[tuple[int, ...], ...] = ()) -> bytes:
        places = b"".join(struct.pack("<HQ", *word) for word in words)
        return b"w" + bytes([len(words)]) + places + b"".join(STEP.pack(*one) for one in steps)

    all_steps = tuple((what, 0, _GIB, 80 * _GIB, _GIB) for what in (2, 0, 4, 5, 6, 7, 3))
    return {
        "nothing": b"f",
        "short": b"f" + header,
        "unfinished": b"s" + bytes(24),
        "header": b"s" + header,
        "another-version": b"s" + struct.pack("<4Q", slow_board.HEADER[0], 7, slow_board.BYTES, 1),
        "steps": patched(*device, steps=all_steps),
        "offer": patched(*device, (offers, offer | 512), steps=(claim, claim, others)),
        "busy": patched(*device, (offers + 2, offer | busy), (claims, 5 << 32), steps=(claim,)),
        "coming": patched(*device, (claims, 9 << 32 | 9), (claims + 1, 9 << 32), steps=all_steps),
        "many-rows": patched((3, most), steps=(others,)),
        "of-nobody": patched(*device, (claims + 60, most), (offers + 60, most), steps=(claim,)),
        # The share of these was too small: a product of two of them had more than 64 bits.
        "everything-claimed": patched(
            *device, (offers, offer | 5), *((claims + n, most) for n in range(3)), steps=(claim,)
        ),
    }


def _leases() -> dict[str, bytes]:
    header = lease_target.HEADER.pack(b"rmmuvmLT", 1, 0, 7)
    records = ((3, 5, 0, 2), (4, 2**64 - 1, 2**32 - 1, 2**32 - 1), (507, 0, 9, 1))
    steps = ((0, 3, 5), (0, 3, 5), (0, 3, 5), (3, 3, 0), (0, 3, 4), (2, 3, 0), (1, 4, 2**64 - 1))
    steps = (*steps, (0, 507, 0), (0, 508, 0))
    packed = bytes([len(records)]) + b"".join(lease_target.RECORD.pack(*one) for one in records)
    packed += b"".join(lease_target.STEP.pack(*one) for one in steps)
    another = lease_target.HEADER.pack(b"rmmuvmLT", 2, 0, 7)
    return {
        "alive": b"l" + header + packed,
        "dead": b"d" + header + packed,
        "another-version": b"l" + another + packed,
        "no-header": b"l",
        "short": b"f" + header,
        "nothing": b"f",
    }
