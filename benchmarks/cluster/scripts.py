# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark scripts of dask-cuda, as they are, on stock workers and on ours.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/cluster/scripts.py --json FILE [--workers 1]

`local_cudf_merge`, `local_cudf_shuffle` and `local_cupy` are run as ``python -m``, from the
installed package, and connect to a cluster by ``--scheduler-address``: dask-cuda makes its own
preload the only one of a cluster that a script starts. So the script is told to leave memory alone
(``--disable-rmm``), and both clusters are set up alike: see `chains.py`. They live at once,
and take turns. Times are those that the scripts measure and write.

The scripts check no results. So the same frames and arrays are made by their functions, put through
the same calls, and added up on both clusters: see `answers.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.cluster import answers
from benchmarks.cluster.chains import ClusterProcess, make_chain
from benchmarks.cluster.script_verdicts import pool_verdict, run_verdicts, verdicts_of
from benchmarks.common import harness

SCRIPTS: dict[str, tuple[str, ...]] = {
    "local_cudf_merge": ("--chunk-size", "16000000"),
    "local_cudf_shuffle": ("--partition-size", "64MiB", "--in-parts", "32"),
    "local_cupy": ("--size", "16000", "--chunk-size", "4000"),
}
"""Up to a gigabyte of input a worker: everything fits."""
SMALL: dict[str, tuple[str, ...]] = {
    "local_cudf_merge": ("--chunk-size", "20000"),
    "local_cudf_shuffle": ("--partition-size", "64KiB", "--in-parts", "8"),
    "local_cupy": ("--size", "400", "--chunk-size", "100"),
}
ANSWERS = {
    "gpu": {"merge": (4_000_000,), "shuffle": (16 << 20, 16), "array": (8000, 2000)},
    "cpu": {"merge": (20_000,), "shuffle": (64 << 10, 8), "array": (400, 100)},
}
"""What functions of `answers.py` are given."""
CHAINS = {"gpu": ("stock-cuda", "ours"), "cpu": ("stock-cpu", "ours-simulated")}
CUDA_BYTES = 24 << 30
MANAGED_BYTES = 12 << 30
"""Of one worker."""
SIMULATED_BYTES = 64 << 20
SCRIPT_SECONDS = 120


def words_of(
    script: str, kind: str, address: str, file: Path, runs: int, workers: int
) -> list[str]:
    """Return the command line of a script; its result goes to `file`, without ``.json``."""
    sizes = (SMALL if kind == "cpu" else SCRIPTS)[script]
    return [
        *("--type", kind, "--scheduler-address", address, "--output-basename", str(file)),
        *("--runs", str(runs), "--warmup-runs", "2", "--no-show-p2p-bandwidth", "--disable-rmm"),
        *("--devs", ",".join(map(str, range(workers))), *sizes),
    ]


def run_script(
    script: str, kind: str, address: str, runs: int, workers: int
) -> list[dict[str, float]]:
    """Run a script on a cluster, and return seconds and bytes of each of its runs.

    Raises
    ------
    RuntimeError
        If it fails, with the last lines that it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result"
        done = subprocess.run(
            [
                *(sys.executable, "-m", f"dask_cuda.benchmarks.{script}"),
                *words_of(script, kind, address, file, runs, workers),
            ],
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
            # The workers hold all of the cap, and the script needs no managed memory of its own.
            env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "1MiB"},
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
            raise RuntimeError(f"{script} ended with status {done.returncode}:\n{said}")
        table = json.loads(file.with_suffix(".json").read_text())
    return [
        {"seconds": seconds, "data_bytes": table["data_processed"][number]}
        for number, seconds in table["wallclock"].items()
    ]


def rows_of(
    runs: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]],
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return a row for each script and chain, and how much longer ours takes than stock."""
    rows, ratios = [], {}
    for script, chains in runs.items():
        medians = {}
        for chain, each in chains.items():
            if not each:
                continue
            seconds = [run["seconds"] for run in each]
            medians[chain] = statistics.median(seconds)
            rows.append(
                {
                    "script": script,
                    "chain": chain,
                    "seconds": medians[chain],
                    "least_seconds": min(seconds),
                    "data_bytes": each[0]["data_bytes"],
                    "runs": len(seconds),
                }
            )
        stock, ours = (
            [value for chain, value in medians.items() if chain.startswith(start)]
            for start in ("stock", "ours")
        )
        if stock and ours:
            ratios[script] = round(ours[0] / stock[0], 4)
    return rows, ratios


def parser() -> argparse.ArgumentParser:
    """Return what the command line may hold."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--workers", type=int, default=2, help="each on a GPU (%(default)s)")
    made.add_argument("--runs", type=int, default=5, help="of a script, each time (%(default)s)")
    made.add_argument("--rounds", type=int, default=2, help="in which scripts are started anew")
    # Room for 40 s of each of the six starts of a round.
    made.add_argument("--time-limit", type=float, default=240, help="s; no start after that")
    made.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=tuple(SCRIPTS))
    made.add_argument("--on-cpu", action="store_true", help="in little, to test this script")
    made.add_argument("--json", type=Path, required=True)
    return made


class Measured:
    """What was found on all clusters.

    Parameters
    ----------
    clusters : mapping of str to ClusterProcess
        By the names of their chains.
    kind : str
        ``gpu`` or ``cpu``.
    workers : int
        Of each cluster.
    """

    def __init__(self, clusters: Mapping[str, ClusterProcess], kind: str, workers: int) -> None:
        self._clusters, self._kind, self._workers = clusters, kind, workers
        self._left_out: dict[str, str] = {}
        self.failures: list[dict[str, str]] = []
        self.runs: dict[str, dict[str, list[dict[str, float]]]] = {}
        self.memory: dict[str, list[dict[str, Any]]] = {}
        self.answers: dict[str, dict[str, dict[str, float]]] = {}

    def time(
        self, scripts: Sequence[str], runs: int, rounds: int, time_limit: float
    ) -> Iterator[None]:
        """Run the scripts on each cluster, in turn; each start is within the time only.

        That the time was over is a failure in the first round, where nothing was measured yet.
        Yields after each script.
        """
        until = time.monotonic() + time_limit
        addresses = {
            name: each.call(answers.scheduler_address) for name, each in self._clusters.items()
        }
        for number in range(rounds):
            for script in scripts:
                for name in list(self._clusters)[:: 1 if number % 2 == 0 else -1]:
                    kept = self.runs.setdefault(script, {}).setdefault(name, [])
                    if time.monotonic() < until:
                        kept += self._start(script, name, addresses[name], runs)
                    elif number == 0:
                        self._keep(script, name, f"not started: {time_limit:g} s were over")
                yield

    def answer(self) -> None:
        """Ask what workers allocate from, then for the answers of each cluster."""
        for name, cluster in self._clusters.items():
            self.answers[name] = {}
            if name in self._left_out:
                self._keep("answers", name, self._left_out[name])
                continue
            try:
                self.memory[name] = cluster.call(answers.memories)
                for what, sizes in ANSWERS[self._kind].items():
                    function = getattr(answers, f"{what}_answer")
                    self.answers[name][what] = cluster.call(function, *sizes, self._kind)
            except SystemExit as error:  # its process has ended: an answer is missing
                self._keep("answers", name, error)

    def verdicts(self) -> dict[str, bool]:
        """Return whether everything ran, where it had to, and rightly."""
        return {
            **run_verdicts(self.runs, self._clusters, self.failures),
            **verdicts_of(self.answers, self.runs),
            **pool_verdict(self.memory, self._kind),
        }

    def results(self) -> dict[str, Any]:
        """Return what was found so far, for the result file."""
        rows, ratios = rows_of(self.runs)
        return {
            "workers": self._workers,
            "rows": rows,
            "ratios": ratios,
            "answers": self.answers,
            "memory": self.memory,
            "failures": self.failures,
            "verdicts": self.verdicts(),
        }

    def _start(self, script: str, name: str, address: str, runs: int) -> list[dict[str, float]]:
        """Run a script on a chain that is not left out; of one that failed there are no runs."""
        if name in self._left_out:
            self._keep(script, name, self._left_out[name])
            return []
        try:
            return run_script(script, self._kind, address, runs, self._workers)
        except RuntimeError as error:
            self._keep(script, name, error)
        except subprocess.TimeoutExpired as error:
            self._keep(script, name, error)
            # What it left on the workers goes on there: figures would be of both, and a hang stays.
            self._left_out[name] = (
                f"left out: {script} did not end here within {SCRIPT_SECONDS} s, "
                "and its work may still hold the workers"
            )
        return []

    def _keep(self, script: str, name: str, what: object) -> None:
        self.failures.append({"script": script, "chain": name, "what": str(what)})
        print(f"{script}, {name}: {what}", flush=True)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    kind, workers = "cpu" if arguments.on_cpu else "gpu", arguments.workers
    managed_bytes = SIMULATED_BYTES if arguments.on_cpu else MANAGED_BYTES
    if not arguments.on_cpu:
        harness.require_managed_on_gpus(workers, {"workers": workers * managed_bytes})
    with contextlib.ExitStack() as stack:
        clusters = {}
        for name in CHAINS[kind]:
            chain = make_chain(name, cuda_bytes=CUDA_BYTES, managed_bytes=managed_bytes)
            clusters[name] = stack.enter_context(ClusterProcess(chain, workers))
        found = Measured(clusters, kind, workers)
        for _ in found.time(
            arguments.scripts, arguments.runs, arguments.rounds, arguments.time_limit
        ):
            harness.write_json(arguments.json, "dask_scripts", found.results())
        found.answer()
        results = found.results()
        # Before the clusters end: one that does not is no reason to lose what was found.
        harness.write_json(arguments.json, "dask_scripts", results)
    return harness.exit_status(results["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
