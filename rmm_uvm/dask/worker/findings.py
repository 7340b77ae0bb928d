# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sends the findings of a worker to scheduler and clients, as Dask events for any process.

Covers the worker's side. In the worker a finding is warned of and logged as without Dask. Does not
cover the warnings that clients see; see `rmm_uvm.dask.cluster.scheduler_plugin` and
`rmm_uvm.dask.cluster.client_warnings`.

Clients read all of them with ``client.get_events("rmm-uvm")``, and hear of new ones with
``client.subscribe_topic("rmm-uvm", handler)``.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm import errors
from rmm_uvm.dask.worker.figures import NAME

if TYPE_CHECKING:
    from rmm_uvm.recording.finding import Finding

__all__ = ["FindingEvent", "Forwarder", "attach", "detach"]


@dataclasses.dataclass(frozen=True)
class FindingEvent:
    """A finding of one worker.

    Parameters
    ----------
    kind : str
        A key of `rmm_uvm.recording.finding.WARNING_OF`, or "ipc_pool" of transfers.
    about : str
        What tells findings of one kind apart: of transfers, why they are slow; else empty.
    category : str
        Name of the warning's class in `rmm_uvm.errors`.
    message : str
        What is the case, with the figures.
    remedy : str
        What to do about it; empty where the message says it.
    device_id : int or None
        CUDA ordinal in the worker; None where it is no matter of one device.
    device_name : str
        As the driver names it.
    value, threshold : float or None
        The figure, and what it passed.
    worker : str
        Address of the worker.

    Examples
    --------
    >>> event = FindingEvent.of_transfers("waiting", "transfers wait", "tcp://10.0.0.1:5")
    >>> event.warning.__name__, FindingEvent.from_dict(event.to_dict()) == event
    ('IpcPoolWarning', True)
    >>> FindingEvent.from_dict({"action": "something else"}) is None
    True
    """

    kind: str
    category: str
    message: str
    about: str = ""
    remedy: str = ""
    device_id: int | None = None
    device_name: str = ""
    value: float | None = None
    threshold: float | None = None
    worker: str = ""

    @classmethod
    def of_finding(cls, finding: Finding, device_name: str, worker: str) -> FindingEvent:
        """Return the event of a monitor's finding."""
        from rmm_uvm.recording.finding import WARNING_OF

        return cls(
            kind=finding.kind,
            category=WARNING_OF[finding.kind].__name__,
            message=finding.message,
            # Two sources that fail are two things; two evictions are one.
            about=finding.message if finding.kind == "monitor" else "",
            remedy=finding.remedy,
            device_id=finding.device_id,
            device_name=device_name,
            value=float(finding.value),
            threshold=float(finding.threshold),
            worker=worker,
        )

    @classmethod
    def of_transfers(cls, reason: str, text: str, worker: str) -> FindingEvent:
        """Return the event of a notice of `rmm_uvm.dask.comm.notices`."""
        return cls("ipc_pool", errors.IpcPoolWarning.__name__, text, about=reason, worker=worker)

    @classmethod
    def from_dict(cls, sent: object) -> FindingEvent | None:
        """Return the event that a message of our topic holds; None if it holds none."""
        if not isinstance(sent, Mapping) or sent.get("action") != "finding":
            return None
        kept: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = sent.get(field.name)
            a_number = value is None or isinstance(value, int | float)
            if a_number if field.name in _NUMBERS else isinstance(value, str):
                kept[field.name] = value
            elif field.default is dataclasses.MISSING:
                return None
        return cls(**kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a value that msgpack can hold."""
        return {"action": "finding", **dataclasses.asdict(self)}

    @property
    def warning(self) -> type[errors.FindingWarning]:
        """The class of the warning; of a later version's, the root of all findings."""
        found = getattr(errors, self.category, None)
        if isinstance(found, type) and issubclass(found, errors.FindingWarning):
            return found
        return errors.FindingWarning

    @property
    def text(self) -> str:
        """The finding and its remedy, in one line."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


_NUMBERS = ("device_id", "value", "threshold")


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
        from rmm_uvm.watch.telling import delivery

        self._worker = weakref.ref(worker)
        self._notices = notices
        self._unsubscribe = delivery.subscribe(self.found)
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
