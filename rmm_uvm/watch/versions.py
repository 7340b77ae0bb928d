# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Versions of what took part in a recording."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from rmm_uvm.support.requirements import installed_version
from rmm_uvm.watch.sampling.sources import WatchedDevice

__all__ = ["driver_version", "versions"]

_PACKAGES = ("rmm-uvm", "rmm-cu13", "cudf-cu13", "cupy-cuda13x")


def driver_version(watched: Iterable[WatchedDevice]) -> str:
    """Return the CUDA version of the driver, such as "13.0"; empty if no GPU is watched."""
    infos = [device.driver.info for device in watched if device.driver is not None]
    number = next((info.driver_version for info in infos if not info.simulated), 0)
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def versions(driver: str = "") -> dict[str, str]:
    """Return versions by name, of those that are there."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        if (version := installed_version(package)) is not None:
            found[package] = version
    return {**found, "CUDA driver": driver} if driver else found
