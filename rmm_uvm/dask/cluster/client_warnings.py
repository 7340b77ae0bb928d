# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings in a client of what workers find, where the scheduler does not see to it.

A scheduler with a `rmm_uvm.dask.cluster.scheduler_plugin.UvmSchedulerPlugin` warns every client by
itself. For one without, as where this package is missing::

    rmm_uvm.dask.warn_here(client)
"""

from __future__ import annotations

from typing import Any

from rmm_uvm.dask.cluster.gathering import Said, WarningGatherer
from rmm_uvm.dask.worker.figures import NAME
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.user_line import warn_user

__all__ = ["warn_here"]


def warn_here(client: Any) -> None:
    """Raise what workers find as Python warnings in this process, at most one of a kind a minute.

    Silent while the scheduler warns its clients by itself, which is asked before each warning.

    Parameters
    ----------
    client : distributed.Client
        Whose workers.

    Raises
    ------
    ConfigurationError
        If it is none.

    Warns
    -----
    FindingWarning
        Later, in the thread of the client's event loop, at the line that the program runs then.
    """
    if not hasattr(client, "subscribe_topic"):
        raise ConfigurationError(
            f"warn_here({shown(client)}): expected a distributed.Client, connected to the cluster"
        )
    gatherer = WarningGatherer(
        client.loop, lambda said: client.loop.add_callback(_warn, client, said)
    )
    client.subscribe_topic(NAME, lambda event: gatherer.hear(event[1]))


async def _warn(client: Any, said: Said) -> None:
    from rmm_uvm.dask.cluster.scheduler_plugin import ANNOUNCEMENTS

    announced = [message for _, message in await client.get_events(ANNOUNCEMENTS)]
    if not announced or announced[-1] != {"action": "begin"}:
        warn_user(said.text, said.category)
