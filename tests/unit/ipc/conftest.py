# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of IPC share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmm_uvm.ipc import pool as pools


@pytest.fixture(autouse=True)
def _leases_expired() -> Iterator[None]:
    """Let the leases that a test leaves behind expire: they keep their pool, as they should."""
    yield
    for pool in list(pools._leasing):
        for slot, held in pool._held.items():
            pool._held[slot] = held._replace(expires_ns=0)
        pool.collect()
    assert not pools._leasing
