# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The names of eviction policies, and what each does, in words."""

from __future__ import annotations

from typing import Final

from rmm_uvm.support.settings import EVICTION_POLICIES

__all__ = ["DEFAULT_POLICY", "POLICIES", "POLICY_REASONS", "SIMPLE_POLICIES"]

POLICIES: Final = tuple(EVICTION_POLICIES)
"""Which live blocks leave first: the oldest, the least recently used, what the last iteration used
last, or what correlation tables do not expect."""

POLICY_REASONS: Final = EVICTION_POLICIES
"""The same in words, by policy."""

SIMPLE_POLICIES: Final = ("fifo", "lru")
"""Those that foresee nothing; the others have a predictor."""

DEFAULT_POLICY: Final = "repeat"
