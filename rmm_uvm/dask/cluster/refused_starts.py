# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Why workers did not start, as seen by the scheduler of a local cluster.

What a worker raises at its start reaches the cluster's process without its cause: an exception that
is pickled loses it. The worker therefore also tells the scheduler, which is in that process.
"""

from __future__ import annotations

from typing import Any

from distributed import SchedulerPlugin

from rmm_uvm.dask.preload import EVENT_TOPIC, REFUSED

__all__ = ["RefusedStarts"]


class RefusedStarts(SchedulerPlugin):  # type: ignore[misc]
    """Collects the reasons of workers that refuse to start.

    Attributes
    ----------
    reasons : list of str
        One line for each worker, in order of time.
    """

    name = "rmm-uvm-refused-starts"

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def log_event(self, topic: str, msg: Any) -> None:
        """Notice an event; Dask calls it for every one."""
        if topic == EVENT_TOPIC and isinstance(msg, dict) and msg.get("action") == REFUSED:
            self.reasons.append(str(msg.get("reason")))
