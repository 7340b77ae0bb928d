# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Answers ``rapids doctor``: the entry point ``rapids_doctor_check``."""

from __future__ import annotations

from rmm_uvm.cli.doctor import report_of_here
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.user_line import warn_user

__all__ = ["rmm_uvm_check"]


def rmm_uvm_check(verbose: bool = False, **_: object) -> str:  # noqa: FBT001, FBT002 - as it is called
    """Check that rmm-uvm can install a managed pool.

    Parameters
    ----------
    verbose : bool
        Taken, as ``rapids doctor`` gives it.

    Returns
    -------
    str
        On what a pool could be installed; ``rapids doctor --verbose`` shows it.

    Raises
    ------
    AvailabilityError
        If none could be installed here; says why.

    Warns
    -----
    UserWarning
        Of what else does not work here, each with its reason.
    """
    report = report_of_here()
    pool = report.feature("managed_pool")
    if not report.is_installable:
        reasons = (report.driver_reason, report.settings_reason, report.software_reason)
        why = next(filter(None, reasons), pool.reason)
        raise AvailabilityError(f"{why}; `rmm-uvm doctor` tells more")
    if report.simulated_bytes is not None:
        return f"on a simulated device, as RMM_UVM_DRIVER={report.driver_setting} asks"
    for feature in report.features:
        if not feature.available:
            warn_user(f"rmm-uvm: {feature.name} is off: {feature.reason}", UserWarning)
    return "on " + ", ".join(f"device {each.index}: {each.name}" for each in report.devices)
