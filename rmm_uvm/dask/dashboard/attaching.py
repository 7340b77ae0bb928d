# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The page ``/rmm-uvm`` on a scheduler's dashboard: one row for each worker.

Footprint against capacity, traffic each way, evictions, what went between workers, findings. Also
under "More..." of every page of the dashboard.

See Also
--------
rmm_uvm.dask.worker.telemetry : where the figures come from.
docs/use/watching-a-cluster.md : what the page looks like, and how to read it.
"""

from __future__ import annotations

from typing import Any

from rmm_uvm.dask.cluster.scheduler_plugin import UvmSchedulerPlugin
from rmm_uvm.dask.worker.figures import NAME
from rmm_uvm.machine.device_info import Availability

__all__ = ["attach", "detach"]


def attach(scheduler: Any) -> Availability:
    """Add the page to a scheduler, and have it warn its clients of findings; again: nothing.

    Parameters
    ----------
    scheduler : distributed.Scheduler
        One that has started, in this process, as a preload or ``cluster.scheduler`` gives it.

    Returns
    -------
    Availability
        Whether there is a page: none without Bokeh or without a dashboard. Clients are warned in
        any case.

    Notes
    -----
    To be called in the thread of the scheduler's event loop. From a client, use
    ``client.register_plugin(UvmSchedulerPlugin())`` instead.
    """
    plugin = scheduler.plugins.get(NAME)
    if not isinstance(plugin, UvmSchedulerPlugin):
        plugin = UvmSchedulerPlugin()
        plugin.begin(scheduler)
        scheduler.add_plugin(plugin, name=NAME)
    return plugin.page


def detach(scheduler: Any) -> None:
    """Take away what `attach` added; nothing if it is not there."""
    plugin = scheduler.plugins.get(NAME)
    if isinstance(plugin, UvmSchedulerPlugin):
        plugin.end()
        scheduler.remove_plugin(NAME)
