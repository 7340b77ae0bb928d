# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How other libraries are told to use RMM's current resource: one file each.

Each file imports its library inside its functions, so that nothing is imported that the user does
not have, and returns a `Wiring`: what was done, or why nothing was, and how to undo it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.integrations.wiring import Wiring, wire
from rmm_uvm.support.submodules import submodules_of

__all__ = ["Wiring", "wire"]

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
