# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How large the report of a day is, how long it takes to make, and how long to open.

A day at one sample a second, with stages and findings, made up: what a monitor would have recorded
of a program that oversubscribes for a third of it. Opening is measured in a headless Chromium from
the request of the file to the moment when all charts are drawn. Needs no GPU.

    python benchmarks/watching/report_size.py [FILE]  # default: benchmarks/results/report_size.json
"""

from __future__ import annotations

import importlib.util
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")

import numpy as np

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.report import Report

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import write_json

SAMPLES = 86_400
ROUNDS = 7
MOST_SECONDS = 2.0
MOST_BYTES = 5_000_000
GIB = 1 << 30
READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)"


def day() -> Recording:
    """Return a day at one sample a second."""
    device = RecordedDevice(0, "made up", "GPU-0", 16 * GIB, 15 * GIB, simulated=True)
    random = np.random.default_rng(20260)
    t = np.arange(1, SAMPLES + 1)
    footprint = 22 * GIB * np.sin(t / SAMPLES * math.pi) ** 2 * random.uniform(0.9, 1.0, SAMPLES)
    into = np.where(footprint > 15 * GIB, random.uniform(1e9, 2e10, SAMPLES), 1e7)
    rows = np.zeros(SAMPLES, SAMPLE_DTYPE)
    rows["time_ns"] = t * 1_000_000_000
    rows["host_to_device_bytes"] = np.cumsum(into)
    rows["device_to_host_bytes"] = np.cumsum(into * random.uniform(0.5, 1.0, SAMPLES))
    rows["evicted_bytes_estimate"] = rows["device_to_host_bytes"] * 0.9
    rows["footprint_bytes"] = footprint
    rows["resident_bytes"] = np.minimum(footprint, 15 * GIB)
    rows["device_used_bytes"] = np.minimum(footprint + GIB / 4, 16 * GIB)
    rows["known"] = int(Known.COUNTERS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT)
    findings = tuple(
        Finding("eviction", 0, 30_000.0 + 60 * i, 1e9 + i, 1e8, "1 GB/s is evicted", "use less")
        for i in range(400)
    )
    stages = tuple(Stage(f"batch {i % 12}", i * 600.0, i * 600.0 + 590) for i in range(144))
    return Recording(rows, (device,), stages, findings, interval_seconds=1.0)


def driver() -> ModuleType:
    """Return the module by which the tests drive a browser."""
    path = Path(__file__).parents[2] / "tests/integration/browser.py"
    spec = importlib.util.spec_from_file_location("browser", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/report_size.json")
    report = Report(day())
    made: list[float] = []
    opened: list[float] = []
    busy: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        for _ in range(3):
            begin = time.perf_counter()
            report.save_html(path)
            made.append(time.perf_counter() - begin)
        report.save_json(Path(folder) / "report.json")
        with driver().opened(Path(folder) / "profile") as page:
            for _ in range(ROUNDS):
                page.call("Page.navigate", url="about:blank")
                page.wait("location.href == 'about:blank'")
                before = page.processor_seconds()
                page.open(path)
                opened.append(page.wait(READY))
                busy.append(page.processor_seconds() - before)
        html_bytes = path.stat().st_size
        json_bytes = (Path(folder) / "report.json").stat().st_size
    write_json(
        target,
        "report_size",
        {
            "samples": SAMPLES,
            "html_bytes": html_bytes,
            "json_bytes": json_bytes,
            "make_seconds": round(statistics.median(made), 3),
            "open_seconds": [round(seconds, 3) for seconds in sorted(opened)],
            "open_processor_seconds": round(statistics.median(busy), 3),
            "load_average": os.getloadavg()[0],
            "verdicts": {
                "html_bytes": {
                    "bytes": html_bytes,
                    "must_be_below": MOST_BYTES,
                    "reached": html_bytes < MOST_BYTES,
                },
                "open": {
                    "seconds": round(statistics.median(opened), 3),
                    "must_be_below": MOST_SECONDS,
                    "reached": statistics.median(opened) < MOST_SECONDS,
                },
            },
        },
    )


if __name__ == "__main__":
    main()
