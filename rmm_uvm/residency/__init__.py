# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets: how much of a device managed memory may take, and who leaves first.

Hints on frames, arrays and buffers are `rmm_uvm.touch`, `rmm_uvm.prefetch`, `rmm_uvm.evict`,
`rmm_uvm.pin` and `rmm_uvm.advise`; what was done is in `rmm_uvm.residency_statistics`.
"""

from __future__ import annotations

from rmm_uvm.residency.budget import Budget
from rmm_uvm.residency.memory_of import Region, memory_of
from rmm_uvm.residency.policies import POLICIES
from rmm_uvm.residency.statistics import ResidencyStatistics

__all__ = ["POLICIES", "Budget", "Region", "ResidencyStatistics", "memory_of"]
