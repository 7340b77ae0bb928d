# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the UVM kernel driver, as its module has them."""

from __future__ import annotations

from dataclasses import dataclass

from rmm_uvm.simulator.checks import checked_whole


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Parameters of the UVM kernel driver, as its module parameters.

    Parameters
    ----------
    prefetch : bool
        ``uvm_perf_prefetch_enable``: whether a page fault brings pages around it.
    prefetch_threshold : int
        ``uvm_perf_prefetch_threshold``, percent, 0..100.
    min_faults : int
        ``uvm_perf_prefetch_min_faults``, 1..20.
    two_passes : bool
        Whether a prefetch call of several blocks goes over them twice, as drivers 580 and 595 do.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.
    """

    prefetch: bool = True
    prefetch_threshold: int = 51
    min_faults: int = 1
    two_passes: bool = True

    def __post_init__(self) -> None:
        checked_whole(self.prefetch_threshold, "prefetch_threshold", 0, 100)
        checked_whole(self.min_faults, "min_faults", 1, 20)
