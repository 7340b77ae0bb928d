# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The environment variables of this package, and those that were meant to be one.

What each says is in docs/use/configuration.md; whoever uses one reads it, by `setting`. Here are
the names, since one that is spelt wrongly is read by nobody, and says nothing.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable

from rmm_uvm.support.messages import shown_name
from rmm_uvm.support.settings import SETTINGS

__all__ = ["KNOWN", "likely_slips", "setting", "unknown_variables"]

_PREFIX = "RMM_UVM_"
_OF_WARNINGS = (
    *("FOOTPRINT", "EVICTION", "AMPLIFICATION", "HOST_MEMORY", "DEVICE_TAKEN", "PREFETCH"),
    *("WAITING", "MONITOR", "BUDGET", "REPEAT_SECONDS"),
)
_NAMES = (
    *("MANAGED_LIMIT", "COUNTERS"),
    *(each.variable.removeprefix(_PREFIX) for each in SETTINGS.values() if each.variable),
    *(f"WARN_{name}" for name in _OF_WARNINGS),
)
_SWITCH = "RMM_UVM"
KNOWN = frozenset({_SWITCH, *(f"{_PREFIX}{name}" for name in _NAMES)})
"""All of them; a test holds this to what the package reads, and to docs/use/configuration.md."""

# What Kubernetes gives every pod beside a service, whose name may begin with rmm-uvm.
_OF_SERVICES = re.compile(r"\w+_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_[A-Z]+(_\w+)?)?)")
_ALIKE, _MUCH_ALIKE = 0.6, 0.8
# What people write who mean the off switch.
_LIKE_SWITCH = frozenset(
    {"OFF", "ON", "SWITCH"} | {f"{do}ABLE{d}" for do in ("EN", "DIS") for d in ("", "D")}
)


def setting(name: str) -> str:
    """Return what a variable says, without spaces around it; empty where it says nothing.

    Parameters
    ----------
    name : str
        Of the variable.
    """
    return os.environ.get(name, "").strip()


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return which variables look like ours and are not, each with the nearest that is.

    Parameters
    ----------
    names : iterable of str
        Of all variables of an environment.

    Returns
    -------
    dict
        Sorted; the nearest is empty where none is near.

    Examples
    --------
    >>> unknown_variables(["RMM_UVM_MANAGED_LIMT", "RMM_UVM_COLOUR", "RMM_UVM_DRIVER", "HOME"])
    {'RMM_UVM_COLOUR': '', 'RMM_UVM_MANAGED_LIMT': 'RMM_UVM_MANAGED_LIMIT'}
    """
    return {
        name: _nearest(name, _ALIKE)
        for name in sorted(names)
        if name.upper().startswith(_PREFIX)
        and name not in KNOWN
        and not _OF_SERVICES.fullmatch(name)
    }


def likely_slips(names: Iterable[str]) -> list[str]:
    """Return a line for each variable that is one of ours but for a slip or two.

    Parameters
    ----------
    names : iterable of str
        Of all variables of an environment.

    Examples
    --------
    >>> likely_slips(["RMM_UVM_MANAGED_LIMT", "RMM_UVM_COLOUR"])
    ['nothing reads the variable RMM_UVM_MANAGED_LIMT: is RMM_UVM_MANAGED_LIMIT meant?']
    """
    return [
        f"nothing reads the variable {shown_name(name)}: is {meant} meant?"
        for name in unknown_variables(names)
        if (meant := _nearest(name, _MUCH_ALIKE))
    ]


def _nearest(name: str, cutoff: float) -> str:
    # Without what all of them have in common, which would make any two alike.
    wanted = name.upper().removeprefix(_PREFIX)
    if wanted in _LIKE_SWITCH:
        return _SWITCH
    ends = [known for known in _NAMES if known.endswith(f"_{wanted}") and wanted]
    asked = [known for known in ends if not known.startswith("WARN_")]  # no thresholds by chance
    found = asked or difflib.get_close_matches(wanted, _NAMES, n=1, cutoff=cutoff)
    return f"{_PREFIX}{found[0]}" if found else ""
