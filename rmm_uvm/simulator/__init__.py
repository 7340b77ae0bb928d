# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what would happen on another machine, by a model of the UVM kernel driver.

Covers machines (`load_machine`), simulated programs (`Simulator`) and access patterns. Does not
cover replaying recorded programs; see `rmm_uvm.planner`.

See Also
--------
docs/understand/simulator.md : what is modelled, what is not, and how far off it is.
"""

from __future__ import annotations

from rmm_uvm.simulator.model import Access, Counters, DriverSettings, Simulator
from rmm_uvm.simulator.patterns import (
    Pattern,
    hash_join_probe,
    pointer_chase,
    random_pages,
    recorded,
    sequential,
    strided,
    zipf,
)
from rmm_uvm.support.machine_files import Machine, load_machine, machine_names, save_machine
from rmm_uvm.support.machine_profile import ThirdTier

__all__ = [
    "Access",
    "Counters",
    "DriverSettings",
    "Machine",
    "Pattern",
    "Simulator",
    "ThirdTier",
    "hash_join_probe",
    "load_machine",
    "machine_names",
    "pointer_chase",
    "random_pages",
    "recorded",
    "save_machine",
    "sequential",
    "strided",
    "zipf",
]
