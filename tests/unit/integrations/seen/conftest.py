# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A pool past its budget, what was announced to it, and modules that play a library's."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import rmm

import rmm_uvm

MIB = 1 << 20


@pytest.fixture
def pool() -> Any:
    return rmm_uvm.managed_pool(
        driver="simulated:256MiB", device_budget="16MiB", maximum_pool_size="192MiB"
    )


@pytest.fixture
def residency(pool: Any) -> Any:
    return pool.managed_mr.residency


@pytest.fixture
def announced(residency: Any) -> Callable[[], int]:
    """MiB of uses that were announced since this was asked before."""
    seen = [0]

    def since() -> int:
        now = residency.residency()["wanted_bytes"]
        seen[0], before = now, seen[0]
        return int(now - before) // MIB

    return since


@pytest.fixture
def full(pool: Any) -> list[rmm.DeviceBuffer]:
    """Buffers that are more than the budget: the first ones are away."""
    return [rmm.DeviceBuffer(size=6 * MIB, mr=pool) for _ in range(4)]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., types.ModuleType]:
    """Put a module in place, as an attribute of the one that it is of, too."""

    def put(name: str, **names: Any) -> types.ModuleType:
        module = types.ModuleType(name)
        module.__path__ = []
        for each, value in names.items():
            setattr(module, each, value)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent in sys.modules:
            monkeypatch.setattr(sys.modules[parent], last, module, raising=False)
        return module

    return put
