# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Scripts of benchmarks/ and ci/ as modules; what they add to the search path goes again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[3]


def script(folder: str, name: str) -> ModuleType:
    """Import a script by its path in a folder, without ``.py``, with its helpers."""
    before = list(sys.path)
    try:
        if folder == "benchmarks":
            sys.path.append(str(REPOSITORY))  # last, as scripts do
            return importlib.import_module(f"benchmarks.{name.replace('/', '.')}")
        sys.path.insert(0, str(REPOSITORY / folder))
        return importlib.import_module(name)
    finally:
        sys.path[:] = before
