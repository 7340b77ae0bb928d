# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The off switch: ``RMM_UVM=off`` takes the package out of a program, without a change to it.

Why it means what it means is in docs/understand/decisions/0035-an-off-switch.md.
"""

from __future__ import annotations

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.variables import setting

__all__ = ["OFF", "is_off"]

OFF = "switched off by RMM_UVM=off"
"""Why nothing is installed or watched, where the switch is off."""


def is_off() -> bool:
    """Return whether ``RMM_UVM`` switches the package off.

    Raises
    ------
    ConfigurationError
        If it is neither "on" nor "off".

    Examples
    --------
    >>> is_off()
    False
    """
    value = setting("RMM_UVM").lower()
    if value not in ("on", "off", ""):
        raise ConfigurationError(f"RMM_UVM is {shown(value)}: use 'on' or 'off'")
    return value == "off"
