# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A preload for Dask workers: every worker installs the managed pool when it starts.

In Dask's configuration; the second entry is optional and holds keywords of
`rmm_uvm.reinitialize`::

    distributed:
      worker:
        preload: [rmm_uvm.dask]
    rmm-uvm:
      maximum_pool_size: 64GiB
      monitor: {interval_seconds: 1}

Each worker is watched, as with `rmm_uvm.reinitialize`, and its figures are among those at its
``/metrics``; ``monitor: false`` leaves that out.

A worker whose pool cannot be installed does not start. Do not give dask-cuda workers ``--rmm-*``
options too: they replace the pool, which is reported by a `ReplacedResourceWarning`.

Does not cover exchanging data between workers on managed memory; see `rmm_uvm.ipc_pool`.
"""

from __future__ import annotations

from typing import Any

import rmm_uvm

__all__ = ["dask_setup", "dask_teardown"]


def dask_setup(worker: Any) -> None:
    """Install the pool; Dask calls this when a worker starts.

    Raises
    ------
    ConfigurationError, DriverError, MemoryError
        As `rmm_uvm.reinitialize`; TypeError if ``rmm-uvm`` names a keyword that it does not have.
    """
    from dask import config

    from rmm_uvm.integrations import prometheus

    keywords = config.get("rmm-uvm", None) or {}
    rmm_uvm.reinitialize(**_underscored(keywords))
    prometheus.register()  # says that it is not available where prometheus_client is missing


def dask_teardown(worker: Any) -> None:
    """Put back what was there; Dask calls this when a worker ends."""
    from rmm_uvm.integrations import prometheus

    prometheus.unregister()
    rmm_uvm.restore()


def _underscored(keywords: Any) -> Any:
    """Return keywords as Python spells them; those of the monitor lie one deeper."""
    if not isinstance(keywords, dict):
        return keywords
    return {name.replace("-", "_"): _underscored(value) for name, value in keywords.items()}
