# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks as modules and as programs, and their committed results."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    """Import a script of benchmarks/, or a helper, by its path without ``.py``."""
    before = list(sys.path)
    sys.path.append(str(BENCHMARKS.parent))  # last, as scripts do
    try:
        return importlib.import_module(f"benchmarks.{name.replace('/', '.')}")
    finally:
        sys.path[:] = before


def run_alone(name: str, *words: str) -> int:
    """Run a script of benchmarks/ on the simulated driver in a process of its own.

    What it counts of its process is its own then: in ours, files and memory of other tests go
    whenever they like.

    Returns
    -------
    int
        Its exit status; what it printed is this test's.
    """
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), *words],
        env={**os.environ, "RMM_UVM_DRIVER": "simulated"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout, done.stderr)
    return done.returncode


def committed(name: str) -> dict[str, Any]:
    """Return a committed result."""
    kept: dict[str, Any] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return kept


def missed(verdicts: dict[str, Any]) -> set[str]:
    """Return the names of the bounds that verdicts say are missed, as the record counts them."""
    names: set[str] = script("common/record_figures").missed({"verdicts": verdicts})
    return names
