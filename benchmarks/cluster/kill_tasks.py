# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `worker_killed.py` runs on workers: one that kills its worker, one that counts memory."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any


def kill_in_transfer(direction: str) -> None:
    """Kill this worker as soon as a chunk has moved; `direction` is "sent" or "received".

    A large result has many, so that the transfer is under way then.
    """
    from rmm_uvm.dask.comm.statistics import totals

    counted = totals()
    name = f"{direction}_staged_bytes"
    before = getattr(counted, name)

    def watch() -> None:
        while getattr(counted, name) == before:
            time.sleep(1e-4)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def memory_state() -> dict[str, Any]:
    """Return what of this worker's memory is in use, and which of its chunks are there."""
    import gc

    from rmm_uvm.dask.comm.staging import current_staging
    from rmm_uvm.dask.comm.statistics import totals
    from rmm_uvm.pool.install import current_installation

    gc.collect()
    installation: Any = current_installation()
    staging: Any = current_staging()
    return {
        "managed_bytes": installation.devices[0].managed_mr.get_allocated_bytes(),
        "chunks": [staging.sending.count, staging.receiving.count],
        "free_chunks": [staging.sending.free_count, staging.receiving.free_count],
        "in_quarantine": len(staging.quarantine),
        "aborted_transfers": totals().aborted_transfers,
    }
