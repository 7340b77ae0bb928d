# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes targets one after the other and writes what came of it; `ci/fuzz.sh` starts it.

    PYTHONPATH=tests python -P -m fuzz.run --seconds 3600 --result FILE --work FOLDER [TARGET...]

The result is written after every target, so that a run which is ended early says how far it came.
The folder keeps the inputs that were found, what libFuzzer printed, and the corpus as it grew,
which the next run goes on with; `--fresh` begins with the repository's alone, and keeps none.
What of it is worth keeping goes into the repository with `fuzz.keep`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from .make_corpus import CORPUS, GROWN
from .one_target import TARGETS, fuzz

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
    "wire-message": 1,
    "wire-handshake": 1,
}
# Atheris leaks what NumPy's comparisons give where it follows them, some 20 KiB for each input that
# is read: a process runs for so long at most, and the next goes on with the corpus that it left.
_SLICE_SECONDS = 60
_MOST_FINDINGS = 10  # of one target
LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1")


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
        seconds = math.ceil(arguments.seconds * _WEIGHTS[name] / weights)
        with tempfile.TemporaryDirectory() as fresh:
            grown = Path(fresh) if arguments.fresh else arguments.work / name / "grown"
            one = result["targets"][name] = _fuzzed(
                name, seconds, arguments.work, grown, arguments.seed
            )
        done = result["targets"].values()
        result["seconds"] = round(sum(one["seconds"] for one in done), 1)
        result["executions"] = sum(one["executions"] for one in done)
        result["findings"] = sum(len(one["findings"]) for one in done)
        arguments.result.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{name}: {json.dumps(one)}", flush=True)
        for found in one["findings"]:
            path = arguments.work / name / "found" / found
            print(f"FOUND {path}; to try it again: python -P -m fuzz.one_target {name} FILE")
    return 1 if result["findings"] else 0


def _fuzzed(name: str, seconds: int, work: Path, grown: Path, seed: int | None) -> dict[str, Any]:
    """Fuzz one target, in slices; after a finding go on with what is left of its time."""
    found_folder, log = work / name / "found", work / f"{name}.log"
    for folder in (found_folder, grown):
        folder.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    executions, left, begin = 0, float(seconds), time.monotonic()
    findings: set[str] = set()
    while left >= 1 and len(findings) < _MOST_FINDINGS:
        arguments = [*LIMITS, f"-max_total_time={int(min(left, _SLICE_SECONDS))}"]
        arguments += [f"-artifact_prefix={found_folder}/", str(grown), *map(str, _kept(name))]
        if seed is not None:
            arguments.append(f"-seed={seed}")
        # A fork has what was imported, and followed for its coverage: that takes six seconds.
        child = os.fork()
        if child == 0:
            fuzz_into(log, name, arguments)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told = log.read_text(errors="replace")
        counts = re.findall(r"number_of_executed_units:\s*(\d+)", told)
        if not counts:
            raise SystemExit(f"{name}: nothing was executed, status {status}: see {log}")
        executions = sum(map(int, counts))
        # As it was told, since an earlier run may have left a file of the same name.
        findings = {Path(each).name for each in re.findall(r"Test unit written to (\S+)", told)}
        if status != 0 and not findings:
            raise SystemExit(f"{name}: ended with status {status}: see {log}")
        left = seconds - (time.monotonic() - begin)
    return {
        "executions": executions,
        "seconds": round(time.monotonic() - begin, 1),
        "corpus_inputs": sum(1 for folder in _kept(name) for _ in folder.iterdir()),
        "findings": sorted(findings),
    }


def _kept(name: str) -> list[Path]:
    """Return the folders that the repository has of a target: seeds, and perhaps what grew."""
    return [folder / name for folder in (CORPUS, GROWN) if (folder / name).is_dir()]


def fuzz_into(log: Path, name: str, arguments: list[str]) -> NoReturn:
    """Fuzz in a process that ends with it."""
    status = 1
    try:
        with log.open("ab") as output:
            for standard in (1, 2):
                os.dup2(output.fileno(), standard)
        # What a target imports late comes now, before libFuzzer looks at the clock: that of pages
        # would take all of a short run. What is wrong with a seed libFuzzer is to find again.
        for path in (CORPUS / name).iterdir():
            with contextlib.suppress(Exception):
                TARGETS[name](path.read_bytes())
        fuzz(name, arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        # With libFuzzer's own hook, which keeps the input that an exception came of.
        ctypes.CDLL(None).exit(status)
        os._exit(1)


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
    parser.add_argument("--fresh", action="store_true", help="begin anew, and keep no corpus")
    parser.add_argument("--seed", type=int, help="of what is tried; otherwise others each time")
    parser.add_argument("targets", nargs="*", choices=[[], *_WEIGHTS], metavar="TARGET")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
