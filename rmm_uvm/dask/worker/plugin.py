# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plugin that installs the managed pool on workers that run: `UvmPlugin`.

Needs Dask. Neither the client that registers it nor the scheduler needs RMM or a GPU.
"""

from __future__ import annotations

import logging
from typing import Any

from distributed import WorkerPlugin

from rmm_uvm.dask.settings import checked

__all__ = ["RefusedStart", "UvmPlugin"]

_KEPT = (
    "these settings stay registered all the same, and workers that start later get them or end: "
    'register others, or call client.unregister_worker_plugin("rmm-uvm")'
)

_logger = logging.getLogger("distributed.worker.rmm_uvm")


class UvmPlugin(WorkerPlugin):  # type: ignore[misc]
    """Installs the managed pool on every worker: ``client.register_plugin(UvmPlugin(...))``.

    On workers that run, and on those that join later. A worker whose pool has these settings
    already keeps it; one whose pool has others gets a new one, if no memory is alive in the old.
    ``client.unregister_worker_plugin("rmm-uvm")`` puts back what was there, except where a preload
    installed the pool, which then stays as it is.

    Parameters
    ----------
    **settings
        Those of `rmm_uvm.reinitialize` that a worker can have, and a few of Dask's side, such as
        ``maximum_pool_size="64GiB"``; docs/use/dask.md has a table. What is left out is as
        the worker's own flags and configuration say.

    Raises
    ------
    ConfigurationError
        A setting is unknown or cannot be used. When registered: the line of a worker that cannot
        have the pool, for instance since it has less free memory. It runs on as it was, but Dask
        keeps the refused settings: a worker that starts later, also one that is restarted, gets
        them, or says why not and ends. Register others, or unregister the plugin.

    Examples
    --------
    >>> UvmPlugin(maximum_pool_size="64GiB", prefetch="always")
    UvmPlugin(maximum_pool_size=68719476736, prefetch='always')
    """

    name = "rmm-uvm"

    def __init__(self, **settings: Any) -> None:
        self.keywords = checked(settings)

    def setup(self, worker: Any) -> None:
        """Install the pool, or keep the one that is there; Dask calls it on each worker."""
        from rmm_uvm.dask.worker.pool import WorkerPool

        try:
            WorkerPool.of(worker).hold("the plugin", self.keywords)
        except Exception as error:
            if _joins(worker):
                _end(worker, error)
            else:
                _add_what_stays(error)
            raise

    def teardown(self, worker: Any) -> None:
        """Let the pool go; Dask calls it when the plugin is removed, or the worker ends."""
        from rmm_uvm.dask.worker.pool import WorkerPool

        WorkerPool.of(worker).let_go("the plugin")

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self.keywords.items())
        return f"UvmPlugin({named})"


def _joins(worker: Any) -> bool:
    """Return whether a worker joins the cluster; one that runs is left as it was."""
    return not worker.periodic_callbacks["heartbeat"].is_running()


def _end(worker: Any, error: Exception) -> None:
    """End a worker that joins: it would log what is raised and go on, without the pool.

    Its nanny is told to end too, so that it does not start the next.
    """
    line = " ".join(str(error).split())
    _logger.error("rmm_uvm: this worker ends, since it cannot have the pool: %s", line)
    worker.loop.add_callback(worker.close, reason="rmm-uvm-refused")


def _add_what_stays(error: Exception) -> None:
    """Have a client that registers told that Dask keeps what its workers refused.

    Dask stores a plugin before any worker sees it, and gives it to workers that start later.
    """
    if len(error.args) == 1 and isinstance(error.args[0], str):  # a line, as our errors have
        error.args = (f"{error.args[0]}; {_KEPT}",)


class RefusedStart(WorkerPlugin):  # type: ignore[misc]
    """Ends a worker that is starting: what it raises is why the worker does not start."""

    name = "rmm-uvm"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def setup(self, worker: Any) -> None:
        """Raise; Dask calls it in place of the plugins that the worker was to have."""
        del worker
        raise self._error.with_traceback(None)
