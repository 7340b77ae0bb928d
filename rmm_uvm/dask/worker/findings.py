# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker finds, passed on to scheduler and clients as Dask events.

Covers the worker's side. In the worker a finding is warned of and logged as without Dask. Does not
cover the warnings that clients see; see `rmm_uvm.dask.cluster.scheduler_plugin` and
`rmm_uvm.dask.cluster.client_warnings`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from rmm_uvm.dask.worker.events import FindingEvent
from rmm_uvm.dask.worker.figures import NAME

if TYPE_CHECKING:
    from rmm_uvm.recording.finding import Finding

__all__ = ["Forwarder", "attach", "detach"]

_EXTENSION = f"{NAME}-findings"


def attach(worker: Any) -> None:
    """Pass every finding of this process on, from now on; again: nothing.

    Those of its monitors, and of its transfers with other workers.

    Parameters
    ----------
    worker : distributed.Worker
        The worker. Of several in one process each passes on everything.
    """
    if _EXTENSION not in worker.extensions:
        worker.extensions[_EXTENSION] = Forwarder(worker)


def detach(worker: Any) -> None:
    """Pass on no more; nothing if it does not."""
    forwarder = worker.extensions.pop(_EXTENSION, None)
    if forwarder is not None:
        forwarder.close()


class Forwarder:
    """Listens in a worker's process, and logs events.

    Parameters
    ----------
    worker : distributed.Worker
        Not kept alive.

    Notes
    -----
    Thread-safe: findings come from the thread of a monitor, and ``worker.log_event`` hands them to
    the worker's event loop.
    """

    def __init__(self, worker: Any) -> None:
        from rmm_uvm.dask.comm import notices
        from rmm_uvm.watch.telling import listeners

        self._worker = weakref.ref(worker)
        self._notices = notices
        self._unsubscribe = listeners.subscribe(self.found)
        notices.subscribe(self.noticed)

    def close(self) -> None:
        """Listen no more; may be called twice. A worker that closes calls it."""
        self._unsubscribe()
        self._notices.unsubscribe(self.noticed)

    def found(self, finding: Finding) -> None:
        """Pass on a finding of a monitor."""
        worker = self._worker()
        if worker is not None:
            event = FindingEvent.of_finding(
                finding, _device_name(finding.device_id), worker.address
            )
            worker.log_event(NAME, event.to_dict())

    def noticed(self, reason: str, text: str) -> None:
        """Pass on that transfers are slow."""
        worker = self._worker()
        if worker is not None:
            event = FindingEvent.of_transfers(reason, text, worker.address)
            worker.log_event(NAME, event.to_dict())


def _device_name(device_id: int) -> str:
    from rmm_uvm.watch.monitor import running

    names = (
        facts.name
        for monitor in running()
        for facts in monitor.devices
        if facts.device_id == device_id
    )
    return next(names, "")  # a monitor that stops has its last look when it is no longer listed
