# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the machine has none of, the operation is done or undone, and works again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .faults import descriptors, no_addresses, no_threads, room
from .harness import tried, without_failure
from .installing import INSTALLING, SAVING
from .operations import OPERATIONS

BY_NAME = {operation.name: operation for operation in [SAVING, *INSTALLING, *OPERATIONS]}
OPENING = ("reinitialize with all", "ipc_pool", "export", "monitor", "save a report")
FAULTS: dict[str, Any] = {
    **{f"{spare} descriptors": descriptors(spare) for spare in range(5)},
    **{f"room for {nbytes} bytes": room(nbytes) for nbytes in (0, 1, 100, 4096, 20_000)},
    "no threads": no_threads,
    "no addresses": no_addresses,
}
CASES = [
    *((name, fault) for name in OPENING for fault in FAULTS),
    *((name, "no threads") for name in ("managed_pool (thread)", "restore", "stop")),
    *(("managed_pool (neighbour)", fault) for fault in FAULTS if "threads" not in fault),
    *((name, "no addresses") for name in ("managed_pool (budget)", "grow (budget)")),
    *((name, fault) for name in ("restore", "stop") for fault in FAULTS if "room" in fault),
]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_operation_where_something_is_used_up_is_done_or_undone(
    name: str, fault: str, tmp_path: Path
) -> None:
    operation = BY_NAME[name]
    after = without_failure(operation, tmp_path)  # also imports what it needs
    # What it does not need it does not lack: nobody has to be told then.
    outcome = tried(operation, FAULTS[fault], tmp_path, after, quiet=True)
    assert outcome.wrong == []
