# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings made up for tests: the shapes that a report has to tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import CAUSES, RecordedDevice, Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known

GIB = 1 << 30
ALL_KNOWN = int(Known.COUNTERS | Known.FAULTS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT)
HOSTILE = [
    "<script>document.title='broken'</script>",
    "</script><img src=x onerror=\"document.title='broken'\">",
    "'\"`${document.title='broken'}`\\",
    "long " * 2000,
    "数据清洗 \U0001f680 \u202egnp.exe",
    "\x1b[2Jcleared\r\n\0",
    "@{name} $x &lt;b&gt; {{ 7 * 7 }}",
    "",
]


def device(device_id: int = 0, *, simulated: bool = False, gib: int = 16) -> RecordedDevice:
    return RecordedDevice(
        device_id=device_id,
        name="simulated device" if simulated else "NVIDIA H200",
        uuid=f"GPU-{device_id:08}",
        total_bytes=gib * GIB,
        capacity_bytes=gib * GIB - GIB // 2,
        simulated=simulated,
        chain=("UvmResourceAdaptor", "PoolMemoryResource", "ManagedMemoryResource"),
    )


def samples_of(
    facts: RecordedDevice,
    n_samples: int,
    interval_seconds: float,
    *,
    most_factor: float,
    known: int = ALL_KNOWN,
) -> np.ndarray[Any, np.dtype[np.void]]:
    """Return a run whose footprint swells to `most_factor` times the capacity and shrinks."""
    t = np.arange(1, n_samples + 1)
    capacity = facts.capacity_bytes
    footprint = capacity * most_factor * np.sin(t / n_samples * math.pi) ** 2
    footprint *= 1 - 0.1 * (t % 7 == 0)
    full = footprint > capacity
    into = np.where(full, 9e9, 2e8 * (t % 5 == 0)) * (1 + 0.5 * np.sin(t / 3.0)) * interval_seconds
    out = np.where(full, 8e9, 0) * (1 + 0.4 * np.cos(t / 4.0)) * interval_seconds
    rows = np.zeros(n_samples, SAMPLE_DTYPE)
    rows["time_ns"] = t * interval_seconds * 1e9
    rows["host_to_device_bytes"] = np.cumsum(into)
    rows["device_to_host_bytes"] = np.cumsum(out)
    rows["evicted_bytes_estimate"] = np.cumsum(out) * 0.95
    rows["prefetched_bytes"] = np.cumsum(into) * 0.3
    rows["discarded_bytes"] = np.cumsum(into) * 0.1
    rows["cpu_faults"] = t * 3
    rows["gpu_faults"] = np.cumsum(into) / 65536
    rows["footprint_bytes"] = footprint
    rows["managed_bytes"] = np.maximum.accumulate(footprint)
    rows["resident_bytes"] = np.minimum(footprint, capacity)
    rows["device_used_bytes"] = np.minimum(footprint + GIB // 4, facts.total_bytes)
    rows["device_id"] = facts.device_id
    rows["known"] = known
    return rows


def _recording(devices: tuple[RecordedDevice, ...], samples: Any, **more: Any) -> Recording:
    given: dict[str, Any] = {
        "sources": {
            "kernel_counters": Availability(True),
            "own_resources": Availability(True),
            "cupti": Availability(False, "not asked for: attribution=True"),
        },
        "began": "2026-11-21T13:00:00Z",
        "interval_seconds": 0.1,
        "settings": {"on_finding": "warn", "history": "86400"},
        "versions": {"rmm-uvm": "0.1.0", "driver": "580.159.04"},
        "cost_seconds": 0.0123,
    }
    return Recording(samples=samples, devices=devices, **(given | more))


def fitting() -> Recording:
    one = device()
    return _recording((one,), samples_of(one, 100, 0.1, most_factor=0.6))


def findings_of(device_id: int = 0) -> tuple[Finding, ...]:
    parts = "process the data in parts, or expect pages to move"
    return (
        _finding(
            "footprint", device_id, 12.0, 1.2, 1.0, "the footprint is {} times capacity", parts
        ),
        _finding(
            "eviction",
            device_id,
            14.0,
            8.0,
            0.1,
            "{} GB/s were evicted in each of the last 3 samples",
            "use a GPU with more memory, or smaller batches",
        ),
        _finding(
            "footprint", device_id, 30.0, 1.5, 1.0, "the footprint is {} times capacity", parts
        ),
        _finding(
            "amplification",
            device_id,
            31.5,
            6.2,
            2.0,
            "the same bytes moved {} times within 60 s",
            "sort or partition the data so that each part is used once",
        ),
    )


def _finding(
    kind: str, device_id: int, at: float, value: float, threshold: float, text: str, remedy: str
) -> Finding:
    message = f"{text.format(value)} (threshold {threshold})"
    return Finding(kind, device_id, at, value, threshold, message, remedy)


def stages_of(duration_seconds: float) -> tuple[Stage, ...]:
    d = duration_seconds
    return (
        Stage("load", 0.02 * d, 0.25 * d, 0, "MainThread"),
        Stage("read csv", 0.03 * d, 0.2 * d, 1, "MainThread"),
        Stage("join", 0.25 * d, 0.7 * d, 0, "MainThread"),
        Stage("shuffle", 0.3 * d, 0.4 * d, 1, "MainThread"),
        Stage("shuffle", 0.45 * d, 0.6 * d, 1, "MainThread"),
        Stage("checkpoint", 0.35 * d, 0.5 * d, 0, "writer"),
        Stage("train", 0.72 * d, math.nan, 0, "MainThread"),
    )


def oversubscribed(*, simulated: bool = False) -> Recording:
    one = device(simulated=simulated)
    samples = samples_of(one, 600, 0.1, most_factor=1.5)
    if simulated:
        samples["known"] |= int(Known.RESIDENT_EXACT)
    return _recording((one,), samples, findings=findings_of(), stages=stages_of(60.0))


def two_devices() -> Recording:
    devices = (device(0), device(1, gib=80))
    parts = [
        samples_of(one, 300, 0.1, most_factor=f) for one, f in zip(devices, (1.4, 0.5), strict=True)
    ]
    samples = np.concatenate(parts)
    samples = samples[np.argsort(samples["time_ns"], kind="stable")]
    return _recording(devices, samples, findings=findings_of(0), stages=stages_of(30.0))


def blind() -> Recording:
    """Return what is recorded where there is no GPU."""
    reasons = {
        "kernel_counters": "no NVIDIA driver is loaded",
        "device_memory": "no CUDA device",
        "nvml": "libnvidia-ml.so.1 cannot be loaded",
        "cupti": "not asked for: attribution=True",
    }
    return _recording(
        (),
        np.zeros(0, SAMPLE_DTYPE),
        sources={name: Availability(False, reason) for name, reason in reasons.items()},
        stages=(Stage("etl", 0.0, 2.0),),
    )


def unknown() -> Recording:
    """Return samples of a device of which nothing is known."""
    one = device()
    return _recording((one,), samples_of(one, 50, 0.1, most_factor=1.5, known=0))


def attributed() -> Recording:
    one = device()
    samples = samples_of(one, 600, 0.1, most_factor=1.5)
    shares = {"user": 0.3, "coherence": 0.55, "prefetch": 0.15}
    rows = []
    for sample in samples[::5]:
        into, out = int(sample["host_to_device_bytes"]), int(sample["device_to_host_bytes"])
        row = [float(sample["time_ns"]) / 1e9, 0]
        row += [int(into * shares.get(cause, 0)) for cause in CAUSES]
        row += [int(out * {"eviction": 0.9, "coherence": 0.1}.get(cause, 0)) for cause in CAUSES]
        rows.append(row)
    columns = ["time_seconds", "device_id"]
    columns += [f"host_to_device_{cause}_bytes" for cause in CAUSES]
    columns += [f"device_to_host_{cause}_bytes" for cause in CAUSES]
    return _recording(
        (one,),
        samples,
        findings=findings_of(),
        stages=stages_of(60.0),
        causes={"columns": columns, "rows": rows},
        busiest=((0x7F0000000000, 5 * GIB, 4 * GIB), (0x7F0000200000, 3 * GIB, 3 * GIB)),
    )


def day() -> Recording:
    """Return 24 hours at one sample a second, with a spike in a single sample."""
    one = device()
    samples = samples_of(one, 86_400, 1.0, most_factor=1.5)
    samples["footprint_bytes"][40_000] = 100 * GIB
    stages = tuple(Stage(f"hour {i}", i * 3600.0, i * 3600.0 + 3500) for i in range(24))
    return _recording((one,), samples, findings=findings_of(), stages=stages, interval_seconds=1.0)


def hostile() -> Recording:
    one = device()
    stages = tuple(Stage(name, i * 1.0, i + 0.9, 0, name) for i, name in enumerate(HOSTILE))
    findings = tuple(
        Finding("monitor", 0, i * 1.0, 1.0, 0.0, name, name) for i, name in enumerate(HOSTILE)
    )
    names = {name: name for name in HOSTILE}
    return _recording(
        (one,),
        samples_of(one, 100, 0.1, most_factor=1.5),
        stages=stages,
        findings=findings,
        settings=names,
        versions=names,
        sources={name: Availability(False, name) for name in HOSTILE},
    )
