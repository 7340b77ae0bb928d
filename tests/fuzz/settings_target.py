# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that are text: what the environment says is understood, or refused by its name."""

from __future__ import annotations

import dataclasses
import math
import os
from unittest import mock

from rmm_uvm._lib.limits import managed_limit_bytes
from rmm_uvm.drivers import counters_are_on
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.support.driver_names import simulated_bytes
from rmm_uvm.support.messages import shown
from rmm_uvm.support.variables import likely_slips
from rmm_uvm.watch.judging.thresholds import Thresholds

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
    # Last, since a variable is known by its line, and inputs are kept.
    "RMM_UVM_DRIVER",
    "RMM_UVM_COUNTERS",
    "RMM_UVM_WARN_EVICTION",
    "RMM_UVM_WARN_AMPLIFICATION",
    "RMM_UVM_WARN_DEVICE_TAKEN",
    "RMM_UVM_WARN_PREFETCH",
    "RMM_UVM_WARN_WAITING",
    "RMM_UVM_WARN_BUDGET",
)
_BY_NAME = [
    field.name
    for field in dataclasses.fields(Thresholds)
    if field.name not in ("monitor", "budget", "repeat_seconds")
]
_TOTAL_BYTES = 1 << 34
_LONGEST_LINE = 200


def environment(data: bytes) -> None:
    """Read the settings of an environment: one line for each of `VARIABLES`, then other names."""
    lines = [os.fsdecode(line) for line in data.replace(b"\0", b"").split(b"\n")]
    told = dict(zip(VARIABLES, lines, strict=False))
    for line in likely_slips(f"RMM_UVM_{name}" for name in lines[len(VARIABLES) :]):
        if not line.isprintable() or len(line) > _LONGEST_LINE:
            raise Finding(f"a line that cannot be read: {line!r}")
    with mock.patch.dict(os.environ, told):
        limit = attempted(managed_limit_bytes)
        budget = attempted(lambda: budget_for(None, None, _TOTAL_BYTES))
        thresholds = attempted(Thresholds.from_environment)
        counters = attempted(counters_are_on)
        device = attempted(_simulated_device_bytes)
    if limit is not None and not 0 < limit < 2**63:
        raise Finding(f"a limit of {limit} bytes")
    if budget is not None:
        _check_budget(budget)
    if thresholds is not None:
        _check_thresholds(thresholds)
    if counters not in (None, True, False):
        raise Finding(f"counters are {counters}")
    if device is not None and not (device > 0 and device % (2 << 20) == 0):
        raise Finding(f"a simulated device of {device} bytes")


def _simulated_device_bytes() -> int | None:
    """Read the driver's name as `rmm_uvm.drivers.choose_driver` does, which would open it."""
    name = os.environ.get("RMM_UVM_DRIVER", "").strip()
    return simulated_bytes(name or "cuda", f"RMM_UVM_DRIVER={shown(name)}")


def _check_thresholds(thresholds: Thresholds) -> None:
    for name in _BY_NAME:
        value = getattr(thresholds, name)
        if value is not None and not 0 < value < math.inf:
            raise Finding(f"{name} is {value}")
    if not 0 <= thresholds.repeat_seconds < math.inf:
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
