# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pools that keep a budget are told by every library; `restore` undoes all of it."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import pytest
import rmm

import rmm_uvm.pool.install
from rmm_uvm.integrations import Wiring

SEEN = [
    "libcudf_calls",
    "numba_launches",
    "cupy_arrays",
    "cupy_kernels",
    "xgboost_data",
    "buffers",
]


def wire_all(pool: Any, budget: object) -> list[Any]:
    driver: Any = types.SimpleNamespace(info=types.SimpleNamespace(simulated=False))
    installed: Any = types.SimpleNamespace(managed_mr=pool, budget=budget)
    return rmm_uvm.pool.install._wire_all((), False, [driver], [installed])


def test_every_library_is_seen_until_it_is_undone(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finders, buffer = list(sys.meta_path), rmm.DeviceBuffer.__cuda_array_interface__
    find_spec = importlib.util.find_spec
    prefetch = Wiring("cudf_prefetch", active=False, reason="as asked")
    monkeypatch.setattr("rmm_uvm.pool.install.wire_prefetch", lambda *_args, **_kwargs: prefetch)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: True)
    wirings = wire_all(pool, budget=True)
    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    assert [each.library for each in wirings] == ["cudf_prefetch", *SEEN]
    assert [each.library for each in wirings if each.active][: len(SEEN) - 1] == SEEN[:-1]
    assert len(sys.meta_path) > len(finders)
    for each in wirings:
        each.undo()
    assert sys.meta_path == finders
    assert rmm.DeviceBuffer.__cuda_array_interface__ is buffer


def test_without_a_budget_nothing_is_looked_at(pool: Any) -> None:
    assert not {each.library for each in wire_all(pool, budget=None)} & set(SEEN)
