# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Our page beside Dask's, on the server that a scheduler's dashboard has already.

Dask's pages are one Bokeh application among those of the scheduler's HTTP server; ours is another,
which can be added and taken away while both run.
"""

from __future__ import annotations

from typing import Any

from rmm_uvm.dask.dashboard.history import History
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.support.requirements import install_extra

__all__ = ["PageServer", "can_have_page"]

_LINK = {"url": "rmm-uvm", "name": "Managed Memory (rmm-uvm)"}
_PLOTS = (
    {"url": "individual-rmm-uvm-memory", "name": "Rmm-Uvm Memory"},
    {"url": "individual-rmm-uvm-traffic", "name": "Rmm-Uvm Traffic"},
)


def can_have_page(scheduler: Any) -> Availability:
    """Return whether a scheduler has a dashboard to which a page can be added, and if not, why."""
    try:
        import bokeh.server.tornado
        import distributed.dashboard.core  # noqa: F401 - refuses a Bokeh that is too old
    except ImportError as error:
        reason = f"a page needs Bokeh: {install_extra('dask')} ({error})"
        return Availability(available=False, reason=reason)
    applications = getattr(getattr(scheduler, "http_application", None), "applications", ())
    if not any(isinstance(app, bokeh.server.tornado.BokehTornado) for app in applications):
        reason = "the scheduler has no dashboard: start it with one (dashboard_address)"
        return Availability(available=False, reason=reason)
    return Availability(available=True)


class PageServer:
    """The page of one scheduler, while it is there.

    Parameters
    ----------
    scheduler : distributed.Scheduler
        One for which `can_have_page` is true.
    history : History
        What pages draw lines of.

    Notes
    -----
    For the thread of the scheduler's event loop.
    """

    def __init__(self, scheduler: Any, history: History) -> None:
        from bokeh.server.tornado import BokehTornado
        from distributed.dashboard.core import BokehApplication
        from distributed.dashboard.scheduler import template_variables
        from tornado.ioloop import IOLoop

        from rmm_uvm.dask.dashboard.page import documents

        self._http = scheduler.http_application
        dasks = next(app for app in self._http.applications if isinstance(app, BokehTornado))
        variables = template_variables(scheduler)
        self._app = BokehApplication(
            documents(history), scheduler, prefix=dasks.prefix, template_variables=variables
        )
        self._http.add_application(self._app)
        self._app.initialize(IOLoop.current())
        self._app.start()
        # The menu "More..." of this scheduler's pages: every page is given this list.
        self._menu: list[dict[str, str]] = variables["plots"]
        self._links = [_LINK, *_PLOTS]
        self._menu += self._links
        self._menu.sort(key=lambda link: link["name"])

    def close(self) -> None:
        """Take the page away; who has it open keeps what it showed last."""
        for link in self._links:
            if link in self._menu:
                self._menu.remove(link)
        if self._app in self._http.applications:
            self._http.applications.remove(self._app)
            self._app.stop()
