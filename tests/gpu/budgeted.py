# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Work of torch with a budget that it passes, for programs of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rmm_uvm.torch
from rmm_uvm.residency import Budget

MIB = 1 << 20


def within_a_budget(work: Callable[[], Any], budget_bytes: int = 160 * MIB) -> dict[str, Any]:
    """Return what the work gives, as ``found``, and what the memory says of itself."""
    with rmm_uvm.torch.managed(device_budget=Budget(budget_bytes)) as memory:
        return {"found": work(), **memory.statistics()}
