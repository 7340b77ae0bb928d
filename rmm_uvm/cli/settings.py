# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether `rmm_uvm.reinitialize` could use what the environment says."""

from __future__ import annotations

from rmm_uvm.doctor import DoctorReport
from rmm_uvm.errors import UvmError

__all__ = ["settings_reason"]

_ANY_DEVICE_BYTES = 1 << 62  # where there is none: a fraction of it is some size


def settings_reason(report: DoctorReport) -> str:
    """Return why a variable ``RMM_UVM_*`` cannot be used, "" where none is known to be wrong.

    On a simulated device all of them are tried. A GPU is not opened for it: what a neighbour has
    is not looked at.

    Parameters
    ----------
    report : DoctorReport
        Of the machine: what is asked for has to suit its device.
    """
    if report.software_reason or report.driver_reason:
        return ""  # which says that nothing can be installed anyway, and perhaps not imported
    from rmm_uvm._lib.limits import managed_limit_bytes
    from rmm_uvm.drivers import counters_are_on
    from rmm_uvm.pool.build import build_pool
    from rmm_uvm.support.off_switch import is_off
    from rmm_uvm.watch.judging.thresholds import Thresholds

    try:
        is_off()
        counters_are_on()
        managed_limit_bytes()
        Thresholds.from_environment()
        if report.simulated_bytes is not None:
            build_pool(driver=report.driver_setting)
        else:
            _check_budget(report)
    except UvmError as error:
        return str(error)
    sizes = [plan.sizes for plan in report.plans]
    return report.plans[0].reason if sizes and not any(sizes) else ""


def _check_budget(report: DoctorReport) -> None:
    from rmm_uvm._lib.neighbors import check_named
    from rmm_uvm.residency.budget import budget_for

    first = next(iter(report.devices), None)
    budget = budget_for("auto", None, _ANY_DEVICE_BYTES if first is None else first.total_bytes)
    named = None if budget is None else budget.neighbors
    if first is not None and named is not None and not isinstance(named, str):
        check_named(named, first.index, len(report.devices))
