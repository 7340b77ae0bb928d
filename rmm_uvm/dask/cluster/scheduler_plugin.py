# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The plugin of a scheduler: a page on the workers' managed memory, and warnings for all clients.

Every client shows what comes under Dask's topic "warn" as a Python warning, without a call of its
user. So workers log what they find under ours, and the plugin says the sum of it there: clients
hear of a kind once a minute, not once from each of 16 workers.

See Also
--------
rmm_uvm.dask.cluster.client_warnings : the same in a client, where the scheduler lacks this package.
"""

from __future__ import annotations

import logging
import pickle
import time
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from tornado.ioloop import PeriodicCallback

from rmm_uvm.dask.cluster.gathering import Said, WarningGatherer
from rmm_uvm.dask.dashboard.history import History
from rmm_uvm.dask.dashboard.server import PageServer, can_have_page
from rmm_uvm.dask.worker.figures import NAME, WorkerFigures
from rmm_uvm.machine.device_info import Availability

__all__ = ["ANNOUNCEMENTS", "UvmSchedulerPlugin"]

ANNOUNCEMENTS = f"{NAME}-scheduler"
"""Topic under which a scheduler says that it warns clients; the last event counts."""

_TICK_MILLISECONDS = 1000


class UvmSchedulerPlugin(SchedulerPlugin):  # type: ignore[misc]
    """A page on the scheduler's dashboard, and warnings for its clients.

    For a scheduler that runs already: ``client.register_plugin(UvmSchedulerPlugin())``. One that
    is started with ``--preload rmm_uvm.dask`` has it, so has `rmm_uvm.dask.local_cluster`'s.

    Attributes
    ----------
    page : Availability
        Whether there is a page; without Bokeh or a dashboard there is none, and why.

    Notes
    -----
    Registering it again does nothing. The scheduler needs this package, but neither RMM nor a GPU.
    """

    name = NAME
    idempotent = True

    def __init__(self) -> None:
        self.page = Availability(available=False, reason="the plugin was not started")
        self._scheduler: Any = None
        self._gatherer: WarningGatherer | None = None
        self._history = History()
        self._server: PageServer | None = None
        self._clock: PeriodicCallback | None = None

    async def start(self, scheduler: Any) -> None:
        """Begin; Dask calls this when the plugin is registered."""
        self.begin(scheduler)

    async def close(self) -> None:
        """End; Dask calls this when the scheduler closes."""
        self.end()

    def begin(self, scheduler: Any) -> None:
        """Show the page and warn clients, from now on; again: nothing."""
        if self._scheduler is not None:
            return
        self._scheduler = scheduler
        self._gatherer = WarningGatherer(scheduler.loop, self._warn)
        scheduler.log_event(ANNOUNCEMENTS, {"action": "begin"})
        self.page = can_have_page(scheduler)
        if self.page:
            self._server = PageServer(scheduler, self._history)
        else:
            logging.getLogger("rmm_uvm.dask").info("no page /%s: %s", NAME, self.page.reason)
        self._clock = PeriodicCallback(self._tick, _TICK_MILLISECONDS)
        self._clock.start()

    def end(self) -> None:
        """Do no more; idempotent."""
        if self._scheduler is None:
            return
        if self._gatherer is not None:
            self._gatherer.close()  # says what waits
        self._scheduler.log_event(ANNOUNCEMENTS, {"action": "end"})
        if self._server is not None:
            self._server.close()
        if self._clock is not None:
            self._clock.stop()
        self._scheduler = self._gatherer = self._server = self._clock = None
        self.page = Availability(available=False, reason="the plugin was stopped")

    def log_event(self, topic: str, msg: Any) -> None:
        """Hear of an event; Dask calls this for every event of every topic."""
        if topic == NAME and self._gatherer is not None:
            self._gatherer.hear(msg)

    def _tick(self) -> None:
        if self._scheduler.plugins.get(NAME) is not self:
            self.end()  # unregistered, of which Dask tells no plugin
            return
        figures = {
            ws.address: WorkerFigures.from_metrics(ws.metrics)
            for ws in self._scheduler.workers.values()
        }
        self._history.note(figures, time.monotonic())

    def _warn(self, said: Said) -> None:
        """Have all clients warn: as `distributed.warn` does in a worker."""
        message = {"message": pickle.dumps(said.text), "category": pickle.dumps(said.category)}
        self._scheduler.log_event("warn", message)

    def __reduce__(self) -> tuple[type[UvmSchedulerPlugin], tuple[()]]:
        # A client sends one that was not started; a started one stays where it is.
        return type(self), ()
