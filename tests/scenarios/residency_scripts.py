# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The residency benchmarks that need no GPU, as modules, and their committed results."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    """Import a script of benchmarks/ by name."""
    before = list(sys.path)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = before


def committed(name: str) -> dict[str, Any]:
    """Return a committed result."""
    kept: dict[str, Any] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return kept
