# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of training/caching.py that measure nothing, and what is in their file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import script
from .test_torch_caching import a_kernel, measured

caching = script("training/caching")
file = script("training/caching_file")
verdicts = script("training/caching_verdicts")
Case = tuple[str, str]
GPT2, BERT, LSTM = ("gpt2", "bf16"), ("bert", "bf16"), ("lstm", "fp32")


def machine_of(
    device: str,
    torch: str = "2.13.0",
    commit: str = "c3c3e55",
    kernel_driver: str = "580.159.04",
    date: str = "2026-11-25",
) -> dict[str, Any]:
    """Return an environment."""
    return {
        **{"device": device, "kernel_driver": kernel_driver, "versions": {"torch": torch}},
        **{"date": date, "commit": commit},
    }


def put(path: Path, *cases: Case, kernels: bool = False) -> dict[str, Any]:
    """Add cases to a file, and return what is in it."""
    kept = file.Kept(path)
    for case in cases:
        if kernels:
            kept.put_kernels(a_kernel(*case))
        else:
            kept.put_rows(measured(case, 0.0, 2.0))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def call(monkeypatch: pytest.MonkeyPatch, path: Path, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["caching.py", "--json", str(path), *words])
    caching.main()


def there(path: Path, case: Case = GPT2) -> dict[float, list[str]]:
    """Return the ways that a file has of a case, by factor; failures have none."""
    found: dict[float, list[str]] = {}
    for row in json.loads(path.read_text())["rows"]:
        if verdicts.case_of(row) == case and "failed" not in row:
            found.setdefault(row["factor"], []).append(row["way"])
    return {factor: sorted(ways) for factor, ways in found.items()}
