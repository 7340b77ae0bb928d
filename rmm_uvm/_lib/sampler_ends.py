# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Samplers stop when the process exits.

Does not cover forks, which are the samplers' own matter: `cpp/include/rmm_uvm/process/forks.hpp`.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol

__all__ = ["Stoppable", "stop_at_exit"]


class Stoppable(Protocol):
    """Something that can be stopped, more than once."""

    def stop(self) -> None:
        """Stop."""


# Module state, because the hook is the process' own.
_live: weakref.WeakSet[Stoppable] = weakref.WeakSet()


def stop_at_exit(sampler: Stoppable) -> None:
    """Let a sampler stop when the process exits, if it still lives then."""
    _live.add(sampler)


def _at_exit() -> None:
    for sampler in list(_live):
        sampler.stop()


atexit.register(_at_exit)
