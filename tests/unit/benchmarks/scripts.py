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
    """Import a script, with the helpers beside it."""
    place = str(REPOSITORY / folder)
    sys.path.insert(0, place)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(place)
