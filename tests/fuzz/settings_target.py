# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that are text: what the environment says is understood, or refused by its name."""

from __future__ import annotations

import math
import os
from unittest import mock

from rmm_uvm.limits import managed_limit_bytes
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.watch.thresholds import Thresholds

from .promises import Finding, attempted

VARIABLES = (
    "RMM_UVM_MANAGED_LIMIT",
    "RMM_UVM_DEVICE_BUDGET",
    "RMM_UVM_EVICTION",
    "RMM_UVM_NEIGHBORS",
    "RMM_UVM_HARVEST_LIMIT",
    "RMM_UVM_WARN_FOOTPRINT",
    "RMM_UVM_WARN_HOST_MEMORY",
    "RMM_UVM_WARN_MONITOR",
    "RMM_UVM_WARN_REPEAT_SECONDS",
)
_TOTAL_BYTES = 1 << 34


def environment(data: bytes) -> None:
    """Read the settings of an environment: one line for each of `VARIABLES`."""
    lines = data.replace(b"\0", b"").split(b"\n")
    told = dict(zip(VARIABLES, map(os.fsdecode, lines), strict=False))
    with mock.patch.dict(os.environ, told):
        limit = attempted(managed_limit_bytes)
        budget = attempted(lambda: budget_for(None, None, _TOTAL_BYTES))
        thresholds = attempted(Thresholds.from_environment)
    if limit is not None and not 0 < limit < 2**63:
        raise Finding(f"a limit of {limit} bytes")
    if budget is not None:
        _check_budget(budget)
    if thresholds is not None:
        factor, repeat = thresholds.footprint_factor, thresholds.repeat_seconds
        if not (factor is None or 0 < factor < math.inf) or not 0 <= repeat < math.inf:
            raise Finding(f"{thresholds}")


def _check_budget(budget: Budget) -> None:
    if not 0 < budget.budget_bytes <= _TOTAL_BYTES:
        raise Finding(f"a budget of {budget.budget_bytes} bytes on a device of {_TOTAL_BYTES}")
    for one in budget.neighbors if isinstance(budget.neighbors, tuple) else ():
        if not 0 <= one < 2**31:
            raise Finding(f"no device has the ordinal {one}")
    limit = budget.limit_on(1)
    if limit is not None and not 0 < limit < 2**63:
        raise Finding(f"at most {limit} bytes on a neighbour")
