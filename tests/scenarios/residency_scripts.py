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
    """Import a script of benchmarks/ by name, whatever else is imported under such names."""
    before = list(sys.path)
    sys.path.insert(0, str(BENCHMARKS))
    others = {
        path.stem: sys.modules.pop(path.stem)  # pytest calls tests/unit/residency "residency"
        for path in BENCHMARKS.glob("*.py")
        if not _is_ours(sys.modules.get(path.stem))
    }
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = before
        sys.modules.update(others)


def _is_ours(module: ModuleType | None) -> bool:
    return module is None or Path(module.__file__ or "").parent == BENCHMARKS


def committed(name: str) -> dict[str, Any]:
    """Return a committed result."""
    kept: dict[str, Any] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
    return kept
