# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets: how much of a device managed memory may take, and who leaves first.

Hints on frames, arrays and buffers are in `rmm_uvm.hints`, and as `rmm_uvm.touch`, `prefetch`,
`evict`, `pin` and `advise`.
"""

from __future__ import annotations

from rmm_uvm.residency.budget import POLICIES, Budget
from rmm_uvm.residency.memory_of import Region, memory_of

__all__ = ["POLICIES", "Budget", "Region", "memory_of"]
