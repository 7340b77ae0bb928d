# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of `rmm_uvm.reinitialize`, checked before anything is changed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import meant, shown
from rmm_uvm.support.output import check_trace
from rmm_uvm.watch.monitor import Monitor

__all__ = ["check_kind", "drivers_of", "make_monitor", "ordinals_of"]

_OWN_KEYWORDS = ("devices", "driver")  # of a monitor: those of the installation


def ordinals_of(devices: int | Sequence[int], driver: UvmDriver | str | None) -> list[int]:
    """Return the ordinals of the devices; opens none of them."""
    ids = list(devices) if isinstance(devices, Iterable) else [devices]
    if not ids:
        raise ConfigurationError(f"devices={shown(devices)}: no device is named; name one or more")
    if len(set(ids)) != len(ids):
        raise ConfigurationError(f"devices={shown(devices)}: name each device once")
    if isinstance(driver, UvmDriver):
        _check_ordinal(devices, ids, driver.info.device_id)
        return [driver.info.device_id]
    return ids


def drivers_of(devices: int | Sequence[int], driver: UvmDriver | str | None) -> list[UvmDriver]:
    """Return the drivers of the devices; raise before anything is changed."""
    return [choose_driver(device_id, driver) for device_id in ordinals_of(devices, driver)]


def _check_ordinal(devices: int | Sequence[int], ids: Sequence[int], device_id: int) -> None:
    """Refuse devices that are not the one of a driver; 0 by itself is what is there by default."""
    if len(ids) > 1:
        raise ConfigurationError("one driver serves one device: leave devices out")
    is_default = isinstance(devices, int) and devices == 0
    if not is_default and ids[0] != device_id:
        raise ConfigurationError(
            f"devices={shown(devices)}: the driver is that of device {device_id}; leave devices out"
        )


def check_kind(**of_rmm: bool) -> None:
    """Refuse what `rmm.reinitialize` has and a managed pool is not."""
    for name, value in of_rmm.items():
        if value is not True:
            raise ConfigurationError(
                f"{name}={shown(value)}: rmm_uvm.reinitialize installs a pool of managed memory; "
                "rmm.reinitialize installs others"
            )


def make_monitor(
    monitor: bool | Mapping[str, Any],  # noqa: FBT001 - the argument of reinitialize
    ordinals: Sequence[int],
) -> Monitor | None:
    """Return the monitor, not started yet; raise before anything is changed."""
    if not isinstance(monitor, bool | Mapping):
        raise ConfigurationError(
            f"monitor={shown(monitor)}: use True, False, or keywords of rmm_uvm.monitor as a dict"
        )
    if monitor is False:
        return None
    keywords = {} if monitor is True else dict(monitor)
    known = [name for name in inspect.signature(Monitor).parameters if name not in _OWN_KEYWORDS]
    wrong = [name for name in keywords if name not in known]
    if wrong:
        raise ConfigurationError(
            f"monitor has {', '.join(map(repr, wrong))}{meant(wrong[0], known)}: "
            f"it can have {', '.join(known)}"
        )
    made = Monitor(devices=ordinals, **keywords)
    if (trace := keywords.get("trace")) is not None:  # or it would be missed when the run is over
        check_trace("monitor: the trace", Path(trace))
    if "on_finding" not in keywords:
        made.defer_to_others()
    return made
