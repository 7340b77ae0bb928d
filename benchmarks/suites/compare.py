# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Other people's tests of what allocates: those that pass by themselves pass under our pool.

    RMM_UVM_MANAGED_LIMIT=16GiB python benchmarks/suites/compare.py --sources FOLDER --json FILE

FOLDER holds checkouts named rmm, cupy, cudf and dask-cuda, of versions near the installed ones; one
that is not there is left out. Each suite runs twice, each time in processes of its own: with what
RMM has by default, and with our pool, which `under_pool.py` installs before each test, and in the
workers of `LocalCUDACluster`. What fails without us says nothing of us; each test that passes
without and fails with us is named. The tests need pytest-timeout and pytest-xdist.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rmm_uvm.drivers import choose_driver

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

SIDES = ("stock", "ours")
PASSED = "passed"


class Suite(NamedTuple):
    """Tests of a project: where they are in its sources, which, and in how many processes."""

    folder: str
    tests: tuple[str, ...]
    processes: int
    without: str = ""  # as of pytest's -k: what needs more than a process' share of the cap


SUITES = {
    "rmm": Suite("python/rmm/rmm/tests", (".",), 8, "test_mr_devicebuffer_lifetime"),
    "cupy": Suite(
        "tests/cupy_tests",
        (
            *(f"core_tests/test_ndarray{part}.py" for part in ("", "_copy_and_view", "_get")),
            *("core_tests/test_ndarray_owndata.py", "core_tests/test_dlpack.py", "creation_tests"),
            *(f"cuda_tests/test_{part}.py" for part in ("memory", "graph", "stream", "device")),
        ),
        24,
        "huge or index_32_bits or over_size_array or large_chunk",
    ),
    "cudf": Suite(
        "python/cudf/cudf/tests",
        (
            *(f"private_objects/test_{part}.py" for part in ("buffer", "column")),
            *("dataframe/test_constructors.py", "dataframe/indexing"),
        ),
        24,
    ),
    "dask-cuda": Suite(
        "dask_cuda/tests",
        ("test_local_cuda_cluster.py", "test_spill.py", "test_device_host_file.py"),
        8,
        "test_with_subset_of_cuda_visible_devices",  # they are not there: our workers say so
    ),
}


def outcomes(document: Path) -> dict[str, tuple[str, str]]:
    """Return what became of each test and why, by its name, as JUnit's XML says it."""
    if not document.exists():
        return {}
    found = {}
    for case in ElementTree.parse(document).getroot().iter("testcase"):
        told = [each for each in case if each.tag in {"failure", "error", "skipped"}]
        outcome = (told[0].tag, (told[0].get("message") or "")[:300]) if told else (PASSED, "")
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def run(
    suite: Suite, sources: Path, side: str, cap_bytes: int, limit_seconds: float
) -> dict[str, Any]:
    """Run a suite on one side; return its outcomes, its seconds and the last lines printed."""
    folder = sources / suite.folder
    environment = dict(os.environ)
    environment["RMM_UVM_MANAGED_LIMIT"] = str(cap_bytes // suite.processes)
    words = ["--timeout=60"]
    if side == "ours":
        here = str(Path(__file__).resolve().parent)
        environment["PYTHONPATH"] = os.pathsep.join([here, environment.get("PYTHONPATH", "")])
        words += ["-p", "under_pool"]
    if suite.without:
        words += ["-k", f"not ({suite.without})"]
    if suite.processes > 1:
        words += ["-n", str(suite.processes)]
    with tempfile.TemporaryDirectory() as temporary:
        document, settings = Path(temporary) / "tests.xml", Path(temporary) / "pytest.ini"
        settings.write_text("[pytest]\n")  # warnings of newer libraries are no failures
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
        begin = time.perf_counter()
        done = subprocess.run(
            [
                *("timeout", "--signal=INT", "--kill-after=20", str(limit_seconds)),
                *(*command, "-c", str(settings), "--rootdir", str(folder), *words),
                *(f"--junitxml={document}", *suite.tests),
            ],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        seconds = time.perf_counter() - begin
        return {
            "outcomes": outcomes(document),
            "seconds": round(seconds, 1),
            "last_lines": done.stdout.splitlines()[-8:],
        }


def count(outcomes: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return how many tests had each outcome."""
    return dict(collections.Counter(outcome for outcome, _ in outcomes))


def compared(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of both sides, and the tests that only ours fails or did not run."""
    stock, ours = (runs[side]["outcomes"] for side in SIDES)
    worse = {
        name: ours.get(name, ("not run", ""))
        for name, (outcome, _) in stock.items()
        if outcome == PASSED and ours.get(name, ("", ""))[0] != PASSED
    }
    return {
        **{side: count(runs[side]["outcomes"].values()) for side in SIDES},
        "seconds": {side: runs[side]["seconds"] for side in SIDES},
        "worse": dict(sorted(worse.items())),
        "last_lines": {side: runs[side]["last_lines"] for side in SIDES},
    }


def main() -> int:
    """Run the suites whose sources are there; exit status 1 if ours fails more, or nothing ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--suites", nargs="*", choices=SUITES, default=list(SUITES))
    parser.add_argument("--limit-seconds", type=float, default=240, help="for one side of a suite")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    cap_bytes = harness.require_managed_limit(choose_driver().memory()[0])
    results: dict[str, Any] = {}
    for name in asked.suites:
        sources = asked.sources / name
        if not sources.is_dir():
            print(f"{name}: no sources at {sources}")
            continue
        runs = {
            side: run(SUITES[name], sources, side, cap_bytes, asked.limit_seconds) for side in SIDES
        }
        results[name] = compared(runs)
        print(f"{name}: {results[name]}", flush=True)
        harness.write_json(asked.json, "suites", {"suites": results})
    ran = all(result["stock"].get(PASSED) for result in results.values())
    return int(not results or not ran or any(result["worse"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
