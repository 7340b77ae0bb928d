# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One engine in a process of its own, which does what it is told, line by line.

cudf.pandas, RMM's resource and the cap on managed memory are a process'. So each way has one, they
live side by side, and their runs can take turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.tpch.engines import LIBRARIES, Engine, make_engine
from benchmarks.tpch.memory import Sizes

# The slowest call is the first: a minute for imports, tables and kernels that are compiled. Five
# are a hang, and short enough that the other ways and libraries still have their turn.
CALL_SECONDS = 300.0


class QueryError(RuntimeError):
    """What was asked of another process failed there, with its traceback; or it has ended."""


class EngineProcess:
    """An engine in another process; also a context manager.

    Several may start at once: that one is there, or why not, shows at its first call. A call that
    takes longer than `CALL_SECONDS` ends the process.

    Parameters
    ----------
    library, folder, way, sizes
        As of `make_engine`.
    managed_bytes : int
        The cap on the process' managed memory.
    """

    def __init__(
        self, library: str, folder: Path, way: str, sizes: Sizes, managed_bytes: int
    ) -> None:
        self.name = f"{library}, {way}"
        words = [library, str(folder), way, str(sizes.pool_bytes)]
        if sizes.budget_bytes is not None:
            words += ["--budget", str(sizes.budget_bytes)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RMM_UVM_MANAGED_LIMIT": str(max(managed_bytes, 1 << 20))},
        )
        self._started = self._late = False

    def call(self, action: str, query: str = "") -> Any:
        """Return what an action gives: ``run`` seconds; ``answer``, ``fallbacks`` and so on."""
        assert self._process.stdin is not None
        if not self._started:
            self._receive()
            self._started = True
        try:
            self._process.stdin.write(json.dumps([action, query]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise QueryError(f"{self.name}: the process ended") from None
        return self._receive()

    def seconds(self, query: str) -> float:
        """Run a query, and return how long it took."""
        return float(self.call("run", query))

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # what could not be written is of no use
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        limit = threading.Timer(CALL_SECONDS, self._end_late)
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
            limit.join()
        if not line:
            why = f": no answer within {CALL_SECONDS:g} s" if self._late else ""
            raise QueryError(f"{self.name}: the process ended{why}")
        succeeded, value = json.loads(line)
        if not succeeded:
            raise QueryError(f"{self.name}:\n{value}")
        return value

    def _end_late(self) -> None:
        """End a process that hangs; who waits for its answer reads that there is none."""
        self._late = True
        self._process.kill()


def perform(engine: Engine, action: str, query: str) -> Any:
    """Do what the other process asks for."""
    if action == "run":
        begin = time.perf_counter()
        engine.run(query)
        return time.perf_counter() - begin
    if action == "answer":
        return engine.answer(engine.run(query))
    if action == "fallbacks":
        return engine.fallbacks(query)
    if action == "orders":
        return dict(engine.orders)
    if action == "memory":
        return engine.memory()
    raise ValueError(action)


def serve(make: Callable[[], Engine], asked: TextIO, told: TextIO) -> None:
    """Make the engine, then do what lines say until there are no more; errors are told as well."""

    def tell(work: Callable[[], Any]) -> bool:
        try:
            line = json.dumps([True, work()])
        except Exception:
            line = json.dumps([False, traceback.format_exc()])
        told.write(line + "\n")
        told.flush()
        return line.startswith("[true")

    engines: list[Engine] = []

    if tell(lambda: engines.append(make())):
        for line in asked:
            tell(lambda line=line: perform(engines[0], *json.loads(line)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("way")
    parser.add_argument("pool", type=int)
    parser.add_argument("--budget", type=int)
    arguments = parser.parse_args()
    # What libraries print goes where errors go: the pipe is for answers.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sizes = Sizes(arguments.pool, arguments.budget)
    serve(
        lambda: make_engine(arguments.library, arguments.folder, arguments.way, sizes),
        sys.stdin,
        told,
    )


if __name__ == "__main__":
    main()
