# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The scripts of benchmarks/published/ as modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from .places import SCRIPTS


@pytest.fixture(scope="session")
def script() -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that imports a script by name."""
    before, modules = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(SCRIPTS))
    yield importlib.import_module
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(SCRIPTS.parent):
            del sys.modules[name]
