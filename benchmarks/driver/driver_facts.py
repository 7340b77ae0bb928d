# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settle what the documents leave open about managed memory, on a real GPU, in under a minute.

    RMM_UVM_MANAGED_LIMIT=8GiB python benchmarks/driver/driver_facts.py --json facts.json

Needs Linux, Python >= 3.11, numpy, an NVIDIA driver for CUDA 13 and cuda-bindings (for its run-time
compiler); root, or leave to open ``/dev/nvidia-uvm-tools``. It holds at most 8 GiB of managed
memory, a quarter of what is free, and changes no setting.

Each question stands alone: one that fails is recorded as ``{"error": ...}`` and the rest goes on.
Every conclusion is computed from the measurements beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import faulthandler
import importlib.metadata
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.driver.facts import (
    addresses,
    call_costs,
    counter_moments,
    deferred_prefetch,
    discard_rounding,
    eviction_order,
    host_mappings,
    kept_copies,
    prefetch_costs,
    read_in_place,
    tracker_sums,
)
from benchmarks.driver.facts.answer import Question
from benchmarks.driver.facts.kernel_counters import CounterError
from benchmarks.driver.facts.libcuda import CudaError
from benchmarks.driver.facts.safety import SafetyError, limit_from_environment
from benchmarks.driver.facts.session import Session

QUESTIONS: tuple[Question, ...] = (
    discard_rounding.QUESTION,
    *tracker_sums.QUESTIONS,
    *prefetch_costs.QUESTIONS,
    deferred_prefetch.QUESTION,
    counter_moments.QUESTION,
    *call_costs.QUESTIONS,
    addresses.QUESTION,
    eviction_order.QUESTION,
    host_mappings.QUESTION,
    kept_copies.QUESTION,
    read_in_place.QUESTION,
)
START_NO_QUESTION_AFTER_SECONDS = 45
GIVE_UP_AFTER_SECONDS = 60


def version_of(package: str) -> str | None:
    """Return an installed distribution's version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def git_commit() -> str | None:
    """Return the commit of this checkout, or None outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def kernel_driver_version() -> str | None:
    """Return the version of the loaded NVIDIA kernel module, or None when it is not shown."""
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return None


def describe(session: Session) -> dict[str, Any]:
    """Return what the figures were measured on."""
    name = ctypes.create_string_buffer(256)
    session.cuda("cuDeviceGetName", name, len(name), session.device)
    cuda_version = ctypes.c_int()
    session.cuda("cuDriverGetVersion", ctypes.byref(cuda_version))
    return {
        "gpu": name.value.decode(),
        "driver": kernel_driver_version(),
        "cuda": f"{cuda_version.value // 1000}.{cuda_version.value % 1000 // 10}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in ("cuda-bindings", "cupy-cuda13x", "numpy")},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": git_commit(),
        "missing_entry_points": session.cuda.missing,
    }


def ask(question: Question, session: Session, seconds_used: float) -> dict[str, Any]:
    """Answer one question, or say why not."""
    result: dict[str, Any] = {"question": question.text, "method": question.method}
    if seconds_used > START_NO_QUESTION_AFTER_SECONDS:
        return {**result, "error": "not asked: the run's time was used up", "seconds": 0.0}
    start = time.perf_counter()
    try:
        answer = question.ask(session)
        result |= {"conclusion": answer.conclusion, "measurements": answer.measurements}
    except Exception as error:  # whatever it is, the other questions still count
        result["error"] = f"{type(error).__name__}: {error}"
    return {**result, "seconds": round(time.perf_counter() - start, 2)}


def print_table(results: dict[str, dict[str, Any]]) -> None:
    """Print each question's conclusion as plain text."""
    for key, result in results.items():
        print(f"\n{key} ({result['seconds']} s): {result['question']}")
        if "error" in result:
            print(f"  ERROR  {result['error']}")
        for name, value in result.get("conclusion", {}).items():
            if isinstance(value, dict):
                print(f"  {name}:")
                for inner_name, inner in value.items():
                    print(f"    {inner_name:<56} {inner}")
            else:
                print(f"  {name:<58} {value}")


def main() -> int:
    """Run the questions asked for; return 0 when every one was answered."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument("--device", type=int, default=0, help="ordinal of the GPU")
    keys = [question.key for question in QUESTIONS]
    parser.add_argument("--only", nargs="+", choices=keys, default=keys, metavar="QUESTION")
    options = parser.parse_args()
    # A hung driver call cannot be interrupted from Python; ending the process can.
    faulthandler.dump_traceback_later(GIVE_UP_AFTER_SECONDS, exit=True)
    start = time.monotonic()
    try:
        with Session(options.device, limit_from_environment()) as session:
            report: dict[str, Any] = {"machine": describe(session), "questions": {}}
            for question in QUESTIONS:
                if question.key in options.only:
                    used = time.monotonic() - start
                    report["questions"][question.key] = ask(question, session, used)
                    # After each question, so that a hang costs one answer and not all.
                    report["managed_peak_bytes"] = session.budget.peak_bytes
                    if options.json:
                        options.json.write_text(json.dumps(report, indent=1) + "\n")
    except (SafetyError, CudaError, CounterError, OSError) as error:
        print(f"driver_facts: {error}", file=sys.stderr)
        return 1
    faulthandler.cancel_dump_traceback_later()
    print_table(report["questions"])
    failed = [key for key, result in report["questions"].items() if "error" in result]
    print(f"\n{len(report['questions']) - len(failed)} answered, {len(failed)} failed", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
