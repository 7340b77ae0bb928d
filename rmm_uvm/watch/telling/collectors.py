# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Collectors in registries of ``prometheus_client``: each kind once, however often it is asked for.

A registry takes names once, and Dask can have several workers in one process: who registers last
only counts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.requirements import install_extra

__all__ = ["library", "register", "unregister"]

# By registry and by what makes the collector: the collector, and how often it was asked for. Weak,
# so that a registry that is dropped leaves nothing behind.
_registered: weakref.WeakKeyDictionary[Any, dict[Callable[[], Any], tuple[Any, int]]] = (
    weakref.WeakKeyDictionary()
)


def library() -> Any:
    """Return ``prometheus_client``.

    Raises
    ------
    AvailabilityError
        If it is not installed, cannot be imported, or is too old.
    """
    try:
        import prometheus_client
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise AvailabilityError(f"prometheus_client cannot be imported: {error}") from None
        raise AvailabilityError(
            f"exporting metrics needs prometheus_client: {install_extra('prometheus')}"
        ) from None
    if problem := too_old("prometheus"):
        raise AvailabilityError(f"exporting metrics: {problem}")
    return prometheus_client


def register(make: Callable[[], Any], registry: Any = None) -> Availability:
    """Export what a collector collects through a registry that something else serves.

    Parameters
    ----------
    make : callable
        Makes the collector, if the registry has none made by it yet.
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
    try:
        exporting = library()
    except AvailabilityError as error:
        return Availability(available=False, reason=str(error))
    registry = exporting.REGISTRY if registry is None else registry
    collector, count = _registered.get(registry, {}).get(make, (None, 0))
    if collector is None:
        collector = make()
        try:
            registry.register(collector)
        except ValueError as error:
            return Availability(available=False, reason=f"Prometheus refused our names: {error}")
    _registered.setdefault(registry, {})[make] = collector, count + 1
    return Availability(available=True)


def unregister(make: Callable[[], Any], registry: Any = None) -> None:
    """Take back one `register`; nothing if there was none."""
    try:
        exporting = library()
    except AvailabilityError:
        return
    registry = exporting.REGISTRY if registry is None else registry
    made = _registered.get(registry, {})
    collector, count = made.get(make, (None, 0))
    if collector is None:
        return
    if count > 1:
        made[make] = collector, count - 1
        return
    del made[make]
    registry.unregister(collector)
