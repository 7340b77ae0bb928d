# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes targets one after the other and writes what came of it; `ci/fuzz.sh` starts it.

    PYTHONPATH=tests python -P -m fuzz.run --seconds 3600 --result FILE --work FOLDER [TARGET...]

The result is written after every target, so that a run which is ended early says how far it came.
The folder keeps the inputs that were found, and what libFuzzer printed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .make_corpus import CORPUS

_WEIGHTS = {
    "trace": 3,
    "trace-bytes": 1,
    "rmm-log": 3,
    "workload": 5,
    "machine": 1,
    "handle": 1,
    "dask-settings": 1,
    "environment": 1,
    "categories": 1,
    "recording": 4,
    "board": 2,
    "harvest-board": 2,
    "lease-table": 1,
}
# Atheris leaks what NumPy's comparisons give where it follows them, some 20 KiB for each input that
# is read: a process runs for so long at most, and the next goes on with the corpus that it left.
_SLICE_SECONDS = 60
_MOST_FINDINGS = 10  # of one target
_LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1")


def main() -> int:
    """Return 1 if anything was found."""
    arguments = _arguments()
    names = arguments.targets or list(_WEIGHTS)
    weights = sum(_WEIGHTS[name] for name in names)
    result: dict[str, Any] = {
        "benchmark": "fuzzing",
        "environment": _environment(),
        "targets": {},
    }
    for name in names:
        seconds = max(1, int(arguments.seconds * _WEIGHTS[name] / weights))
        result["targets"][name] = _fuzzed(name, seconds, arguments.work)
        done = result["targets"].values()
        result["seconds"] = round(sum(one["seconds"] for one in done), 1)
        result["executions"] = sum(one["executions"] for one in done)
        result["findings"] = sum(len(one["findings"]) for one in done)
        arguments.result.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{name}: {json.dumps(result['targets'][name])}", flush=True)
    return 1 if result["findings"] else 0


def _fuzzed(name: str, seconds: int, work: Path) -> dict[str, Any]:
    """Fuzz one target, in slices; after a finding go on with what is left of its time."""
    found_folder, log = work / name / "found", work / f"{name}.log"
    for folder in (found_folder, work / name / "grown"):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(found_folder.iterdir())
    executions, begin = 0, time.monotonic()
    log.unlink(missing_ok=True)
    while (left := seconds - (time.monotonic() - begin)) >= 1:
        command = [sys.executable, "-P", "-m", "fuzz.one_target", name, *_LIMITS]
        slice_seconds = int(min(left, _SLICE_SECONDS))
        command += [f"-max_total_time={slice_seconds}", f"-artifact_prefix={found_folder}/"]
        command += [str(work / name / "grown"), str(CORPUS / name)]
        with log.open("a") as output:
            ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
        counts = re.findall(r"number_of_executed_units:\s*(\d+)", log.read_text(errors="replace"))
        if not counts:
            raise SystemExit(f"{name}: nothing was executed, status {ended.returncode}: see {log}")
        executions = sum(map(int, counts))
        new = set(found_folder.iterdir()) - before
        if len(new) >= _MOST_FINDINGS:
            break
        if ended.returncode != 0 and not any(found_folder.iterdir()):
            raise SystemExit(f"{name}: ended with status {ended.returncode}: see {log}")
    return {
        "executions": executions,
        "seconds": round(time.monotonic() - begin, 1),
        "corpus_inputs": sum(1 for _ in (CORPUS / name).iterdir()),
        "findings": sorted(path.name for path in set(found_folder.iterdir()) - before),
    }


def _environment() -> dict[str, Any]:
    repository = Path(__file__).resolve().parents[2]
    asked = subprocess.run(
        ["git", "-C", repository, "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "python": platform.python_version(),
        "cpu_count": os.cpu_count(),
        "nice": os.nice(0),
        "versions": {
            name: importlib.metadata.version(name) for name in ("rmm-uvm", "numpy", "atheris")
        },
        "date": datetime.date.today().isoformat(),
        "commit": asked.stdout.strip() or "unknown",
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, required=True, help="of all targets together")
    parser.add_argument("--result", type=Path, required=True, help="file for the figures")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is found")
    parser.add_argument("targets", nargs="*", choices=[[], *_WEIGHTS], metavar="TARGET")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
