# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the machine has none of, the operation is done or undone, and works again."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from .faults import addresses, descriptors, room, threads
from .harness import tried, without_failure
from .installing import INSTALLING, WITHOUT_DRIVER
from .operations import OPERATIONS
from .world import MIB, SIMULATED

BY_NAME = {operation.name: operation for operation in [*WITHOUT_DRIVER, *INSTALLING, *OPERATIONS]}
OPENING = ("reinitialize with all", "ipc_pool", "export", "monitor", "save a report")
THREADED = (
    *("managed_pool (thread)", "reinitialize with all over another", "restore", "stop"),
    *("monitor of causes and faults", "snapshot and report"),
)
LARGE = ("managed_pool (budget)", "grow (budget)", "second pool", "simulated_node")
FAULTS: dict[str, Any] = {
    **{f"{spare} descriptors": descriptors(spare) for spare in range(5)},
    **{f"room for {nbytes} bytes": room(nbytes) for nbytes in (0, 1, 100, 4096, 20_000)},
    **{f"{spare} more threads": threads(spare) for spare in range(4)},
    **{f"addresses for {spare} MiB": addresses(spare * MIB) for spare in (1, 9, 17)},
}


def names_of(fault: str) -> tuple[str, ...]:
    """Return what a message says of a fault."""
    return next(names for kind, names in NAMES.items() if kind in fault)


NAMES = {
    "descriptors": (os.strerror(errno.EMFILE), SIMULATED),
    "room": (os.strerror(errno.EFBIG), SIMULATED),
    "threads": ("thread",),
    "addresses": (os.strerror(errno.ENOMEM), "bytes"),
}
# What is told of a link that cannot be measured: the driver's own answer.
SAID = {"topology": ("allocate_managed answered out of memory",)}
# For those that begin several threads, or have several slabs.
MORE = ("1 more threads", "2 more threads", "3 more threads")
MORE += ("addresses for 9 MiB", "addresses for 17 MiB")
CASES = [
    *((name, fault) for name in OPENING for fault in FAULTS if fault not in MORE),
    *((name, fault) for name in THREADED for fault in FAULTS if "threads" in fault),
    *(("managed_pool (neighbour)", fault) for fault in FAULTS if "threads" not in fault),
    *((name, fault) for name in LARGE for fault in FAULTS if "addresses" in fault),
    *(("HarvestBoard", fault) for fault in FAULTS if "descriptors" in fault or "room" in fault),
    *((name, fault) for name in ("restore", "stop") for fault in FAULTS if "room" in fault),
]
# Of hints, and what pools do by themselves: with nothing of each kind.
NOTHING = ("0 descriptors", "room for 0 bytes", "0 more threads", "addresses for 1 MiB")
LITTLE = ("topology", *(operation.name for operation in OPERATIONS))
CASES += [case for name in LITTLE for fault in NOTHING if (case := (name, fault)) not in CASES]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_operation_where_something_is_used_up_is_done_or_undone(
    name: str, fault: str, tmp_path: Path
) -> None:
    operation = BY_NAME[name]
    course = without_failure(operation, tmp_path)  # also imports what it needs
    # What it does not need it does not lack: nobody has to be told then.
    names = (*names_of(fault), *SAID.get(name, ()))
    outcome = tried(operation, FAULTS[fault], tmp_path, course, names=names, quiet=True)
    assert outcome.wrong == []
