# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The names of eviction policies, and what each does, in words.

Imports nothing, so that command lines can offer them at once. The policies are C++
(``cpp/include/rmm_uvm/residency/eviction_policy.hpp``).
"""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_POLICY", "POLICIES", "POLICY_REASONS", "SIMPLE_POLICIES"]

POLICIES: Final = ("fifo", "lru", "repeat", "correlation")
"""Which live blocks leave first: the oldest, the least recently used, what the last iteration used
last, or what correlation tables do not expect."""

POLICY_REASONS: Final = {
    "fifo": "what came first leaves first",
    "lru": "what was used longest ago leaves first",
    "repeat": "what the last iteration used last leaves first; lru where none repeats",
    "correlation": "what is not expected next leaves first; lru where little is foreseen",
}
"""The same in words, by policy."""

SIMPLE_POLICIES: Final = ("fifo", "lru")
"""Those that foresee nothing; the others have a predictor."""

DEFAULT_POLICY: Final = "repeat"
