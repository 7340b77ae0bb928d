# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The process-wide cap on managed memory.

Covers the environment variable ``RMM_UVM_MANAGED_LIMIT`` and the account that every managed byte
of the process counts against. Does not cover pool sizes, which are clamped to the cap in
`rmm_uvm.pool.sizing`.
"""

from __future__ import annotations

from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm.support.units import parse_bytes
from rmm_uvm.support.variables import setting

ENVIRONMENT_VARIABLE = "RMM_UVM_MANAGED_LIMIT"

# One per process, because the cap is: two pools may not take it twice.
_account = ManagedAccount()


def managed_limit_bytes() -> int | None:
    """Return the cap that ``RMM_UVM_MANAGED_LIMIT`` asks for, bytes, or None for no cap.

    Raises
    ------
    ConfigurationError
        If the variable is set to something that is not a size.
    """
    text = setting(ENVIRONMENT_VARIABLE)
    return parse_bytes(text, name=ENVIRONMENT_VARIABLE) if text else None


def process_account() -> ManagedAccount:
    """Return the account of this process, its cap as the environment says now.

    Raises
    ------
    ConfigurationError
        If ``RMM_UVM_MANAGED_LIMIT`` is not a size.
    """
    _account.limit_bytes = managed_limit_bytes()
    return _account
