# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether `rmm_uvm.reinitialize` could use what the environment says."""

from __future__ import annotations

from rmm_uvm.doctor import DoctorReport
from rmm_uvm.errors import UvmError

__all__ = ["settings_reason"]

_ANY_DEVICE_BYTES = 1 << 62  # where there is none: a fraction of it is some size


def settings_reason(report: DoctorReport) -> str:
    """Return why a variable ``RMM_UVM_*`` cannot be used, "" where all can.

    Parameters
    ----------
    report : DoctorReport
        Of the machine: what is asked for has to suit its device.
    """
    if report.software_reason:
        return ""  # which says that nothing can be installed anyway, and perhaps not imported
    from rmm_uvm._lib.neighbors import check_not_itself
    from rmm_uvm.drivers import counters_are_on
    from rmm_uvm.limits import managed_limit_bytes
    from rmm_uvm.residency.budget import budget_for
    from rmm_uvm.watch.thresholds import Thresholds

    device, total_bytes = 0, report.simulated_bytes
    if total_bytes is None and report.devices:
        device, total_bytes = report.devices[0].index, report.devices[0].total_bytes
    try:
        counters_are_on()
        managed_limit_bytes()
        budget = budget_for(None, None, total_bytes or _ANY_DEVICE_BYTES)
        if budget is not None:
            check_not_itself(budget.neighbors, device)
        Thresholds.from_environment()
    except UvmError as error:
        return str(error)
    return ""
