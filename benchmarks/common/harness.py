# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shared by all GPU benchmarks: safety, the machine's description, interleaving, JSON.

Safety: all managed memory of a benchmark together stays under ``RMM_UVM_MANAGED_LIMIT``, which has
to be set, is at most 24 GiB, and is checked against free device memory first.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import importlib.metadata
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm.support.output import written_whole

MOST_MANAGED_BYTES = 24 << 30
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h
_PACKAGES = (
    *("rmm-uvm", "rmm-cu13", "cudf-cu13", "cupy-cuda13x", "torch", "xgboost", "numpy"),
    *("transformers", "pandas", "polars", "cudf-polars-cu13"),
    *("dask", "distributed", "dask-cuda", "dask-cudf-cu13", "cuml-cu13", "cugraph-cu13"),
    *("distributed-ucxx-cu13", "ucxx-cu13", "libucx-cu13"),
)


def require_managed_limit(free_bytes: int) -> int:
    """Return the cap on managed memory; end the program where there is none that is safe."""
    from rmm_uvm._lib.limits import managed_limit_bytes

    limit_bytes = managed_limit_bytes()
    if limit_bytes is None:
        raise SystemExit("set RMM_UVM_MANAGED_LIMIT (at most 24GiB): no GPU run without it")
    if limit_bytes > min(MOST_MANAGED_BYTES, free_bytes):
        raise SystemExit(
            f"RMM_UVM_MANAGED_LIMIT is {limit_bytes} bytes: at most 24 GiB and no more than the "
            f"{free_bytes} bytes that the card has free"
        )
    return limit_bytes


def require_managed_on_gpus(gpus: int, managed_bytes: Mapping[str, int]) -> None:
    """End the program where the first `gpus` GPUs are not there, or the cap is too small.

    `managed_bytes` says by name what wants managed memory, spread evenly over the GPUs.
    """
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.errors import UvmError

    try:
        free_bytes = min(cuda_driver(device).memory()[0] for device in range(gpus))
    except UvmError as error:
        raise SystemExit(f"{gpus} GPUs are needed: {error}") from error
    limit_bytes = require_managed_limit(free_bytes)
    if sum(managed_bytes.values()) > limit_bytes:
        raise SystemExit(
            f"{', '.join(managed_bytes)} need {sum(managed_bytes.values())} bytes of managed "
            f"memory, RMM_UVM_MANAGED_LIMIT is {limit_bytes}"
        )


def environment() -> dict[str, Any]:
    """Return machine, driver, versions, date and commit, for a result file."""
    from rmm_uvm.drivers import choose_driver

    info = choose_driver().info
    return {
        "device": info.name,
        "device_bytes": info.total_bytes,
        "kernel_driver": _kernel_driver(),
        "cuda_driver_version": info.driver_version,
        "simulated": info.simulated,
        "cpu_count": os.cpu_count(),
        "managed_limit": os.environ.get("RMM_UVM_MANAGED_LIMIT", ""),
        "counters": os.environ.get("RMM_UVM_COUNTERS", "on"),
        **software(),
    }


def software() -> dict[str, Any]:
    """Return versions, date and commit: the environment of what needs no device."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": os.environ.get("RMM_UVM_COMMIT") or _commit(),
    }


def asked_json_path(description: str | None) -> Path:
    """Return what ``--json`` says, of a benchmark with no other argument; it has to be given."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True)
    path: Path = parser.parse_args().json
    return path


def keep_host_memory() -> None:
    """Have this process keep the host memory that it frees, so that it need not be cleared anew.

    Of glibc; elsewhere nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, -1)


def interleaved(
    runs: Mapping[str, Callable[[], float]], rounds: int, warm_ups: int = 2
) -> dict[str, list[float]]:
    """Run each of `runs` once a round, in an order that turns round by round.

    Interleaving puts slow drifts of the machine into all figures alike; turning the order does the
    same with what one run leaves behind for the next.
    """
    names = list(runs)
    for _ in range(warm_ups):
        for name in names:
            runs[name]()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            seconds[name].append(runs[name]())
    return seconds


def ratio(seconds: Mapping[str, Sequence[float]], name: str, base: str) -> float:
    """Return the median of the ratios of pairs that ran in the same round."""
    return statistics.median(a / b for a, b in zip(seconds[name], seconds[base], strict=True))


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each list."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def judged(value: float, bound: float) -> dict[str, Any]:
    """Return a ratio beside the bound it must not pass."""
    return {"ratio": round(value, 4), "must_be_at_most": bound, "reached": value <= bound}


def judged_at_least(value: float, bound: float) -> dict[str, Any]:
    """Return a figure beside the bound that it has to reach."""
    return {"value": round(value, 4), "must_be_at_least": bound, "reached": value >= bound}


def judged_at_most(value: float, bound: float) -> dict[str, Any]:
    """Return a figure beside the bound that it must not pass."""
    return {"value": round(value, 4), "must_be_at_most": bound, "reached": value <= bound}


def exit_status(verdicts: Mapping[str, Any]) -> int:
    """Return 1 if a verdict is missed, else 0."""
    missed = [
        n for n, v in verdicts.items() if v is False or (isinstance(v, dict) and not v["reached"])
    ]
    for name in missed:
        print(f"missed: {name}")
    return 1 if missed else 0


def write_json(
    path: Path,
    benchmark: str,
    results: Mapping[str, Any],
    machine: Mapping[str, Any] | None = None,
    *,
    quiet: bool = False,
) -> None:
    """Write a result file, a line for each row, and print its verdicts.

    Parameters
    ----------
    machine : mapping, optional
        The environment that the results are of; by default that of this process.
    quiet : bool
        Print nothing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    of_machine = environment() if machine is None else machine
    report = {"benchmark": benchmark, "environment": of_machine, **results}
    parts = (f" {json.dumps(name)}: {_lines(value)}" for name, value in report.items())
    with written_whole(path, "the result") as partial:  # some are written row by row
        partial.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    if not quiet:
        print(json.dumps(results.get("verdicts", results), indent=1))


def _lines(value: Any) -> str:
    """Return JSON with a line for each of the rows of a list, else for each value."""
    if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
    return json.dumps(value, indent=1).replace("\n", "\n ")


def _kernel_driver() -> str:
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return ""


def _commit() -> str:
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
