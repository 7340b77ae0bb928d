# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is on the device: budgets, and hints from those who know what is needed.

`Budget` says how much of a device managed memory may take and who leaves first; `touch`,
`prefetch`, `evict`, `pin` and `advise` are hints on frames, arrays and buffers.
"""

from __future__ import annotations

from rmm_uvm.residency.budget import POLICIES, Budget
from rmm_uvm.residency.hints import Hinted, evict, pin, prefetch, touch
from rmm_uvm.residency.memory_of import Region, memory_of

__all__ = [
    "POLICIES",
    "Budget",
    "Hinted",
    "Region",
    "evict",
    "memory_of",
    "pin",
    "prefetch",
    "touch",
]
