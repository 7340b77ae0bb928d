# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of several scenarios; what they need is imported by the first that asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .residency_scripts import script


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What makes this process one on a machine."""
    from .torch_caching_calls import machine_of

    harness = script("common/harness")

    def be(device: str, torch: str = "2.13.0", **others: str) -> None:
        machine = machine_of(device, torch, **others)
        monkeypatch.setattr(harness, "environment", lambda: machine)
        monkeypatch.setattr(harness, "software", lambda: {**machine, "device": None})

    be("NVIDIA H200")
    return be


@pytest.fixture
def measuring(
    here: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[tuple[str, str], bool]]:
    """What is measured, and whether its kernels were recorded; nothing is."""
    from .test_torch_caching import a_kernel, measured

    caching = script("training/caching")
    begun: list[tuple[tuple[str, str], bool]] = []
    recorded: set[tuple[str, str]] = set()

    def kernels_of(name: str, dtype: str, batch: int) -> dict[str, Any]:
        recorded.add((name, dtype))
        return a_kernel(name, dtype, batch)

    def compared(case: tuple[str, str], arguments: Any, save: Callable[[Any], None]) -> int:
        begun.append((case, case in recorded))
        batch = caching.batch_of(case, arguments.batch_fraction)
        save([{**row, "batch": batch} for row in measured(case, *caching.factors_of(arguments))])
        return 0

    monkeypatch.setattr(caching, "kernels_of", kernels_of)
    monkeypatch.setattr(caching, "compared", compared)
    monkeypatch.setattr(
        caching.rmm_uvm, "cuda_driver", lambda _: caching.rmm_uvm.simulated_device()
    )
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1GiB")
    return begun
