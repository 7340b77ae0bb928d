# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures for Prometheus: over an endpoint of their own, or with those of a program that has one.

docs/use/metrics.md lists what is exported. What is not known is left out: it is never 0. Needs
``prometheus_client``: ``pip install 'rmm-uvm[prometheus]'``.

See Also
--------
rmm_uvm.watch.snapshot : where the figures come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.watch.monitor import Monitor, running
from rmm_uvm.watch.telling import collectors
from rmm_uvm.watch.telling.prometheus import FiguresCollector

if TYPE_CHECKING:
    from rmm_uvm.watch.telling.metrics_server import MetricsServer

__all__ = ["MonitorCollector", "register", "start_http", "unregister"]


class MonitorCollector(FiguresCollector):
    """Gives ``prometheus_client`` figures: a custom collector.

    Parameters
    ----------
    monitors : callable, returns iterable of Monitor
        Asked at every collection. Of a device that several watch, the one that has run longest
        counts. One that was not started is passed over.

    Notes
    -----
    Thread-safe.
    """

    def __init__(self, monitors: Callable[[], Iterable[Monitor]] = running) -> None:
        super().__init__(monitors)


def register(registry: Any = None) -> Availability:
    """Export all running monitors of this process through a registry that something else serves.

    Parameters
    ----------
    registry : prometheus_client.CollectorRegistry, optional
        By default the one of the process, which Dask workers serve at ``/metrics``.

    Returns
    -------
    Availability
        Not available without ``prometheus_client``, or if something else exports these names.

    Notes
    -----
    Not thread-safe. Every `register` wants an `unregister`; the last of them takes effect.
    """
    return collectors.register(MonitorCollector, registry)


def unregister(registry: Any = None) -> None:
    """Take back one `register`; nothing if there was none."""
    collectors.unregister(MonitorCollector, registry)


def start_http(port: int, host: str = "127.0.0.1", monitor: Monitor | None = None) -> MetricsServer:
    """Serve the figures at ``http://HOST:PORT/metrics``.

    Parameters
    ----------
    port : int
        0 for any free one.
    host : str
        Address to listen on. The figures are not secret, but nothing protects them either.
    monitor : Monitor, optional
        Whose figures; by default those of all monitors that run, such as the one that
        `rmm_uvm.reinitialize` started. If none runs, one is started, and stops with the server.

    Returns
    -------
    MetricsServer
        With ``port`` and ``close()``; also a context manager.

    Raises
    ------
    AvailabilityError
        If ``prometheus_client`` is not installed, the port cannot be had, or the process can have
        no more threads.
    ConfigurationError
        If the port is no number from 0 to 65535.

    Notes
    -----
    Serves from threads of its own, which do not keep the process alive.
    """
    return Monitor.start_http(port, host, monitor)
