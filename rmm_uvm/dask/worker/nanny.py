# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The nanny of a local cluster's worker: closing waits for a process that was killed.

Dask's asks a worker to end, kills it after four seconds, and gives it no time at all to be gone
where the machine has much else to do. Its TimeoutError then ends the closing of the whole cluster:
the scheduler and what it listens on stay behind, and the ``with`` statement raises.
"""

from __future__ import annotations

import asyncio
import logging

from distributed import Nanny

__all__ = ["LocalNanny"]

_GONE_SECONDS = 60.0  # the kernel needs that long for a killed process only where it is stuck

_logger = logging.getLogger("rmm_uvm.dask")


class LocalNanny(Nanny):  # type: ignore[misc]
    """Dask's nanny; a worker that it killed is waited for until it is gone, up to a minute."""

    async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
        """End the worker's process, killing it after most of `timeout` seconds."""
        worker = self.process
        try:
            await super().kill(timeout=timeout, reason=reason)
        except TimeoutError:
            _logger.info("rmm_uvm: worker %s was killed; waiting until it is gone", self.name)
            await asyncio.wait_for(worker.stopped.wait(), _GONE_SECONDS)
