# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a monitor, checked before anything is opened."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.driver_names import DRIVERS, simulated_bytes
from rmm_uvm.support.messages import shown
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.telling.delivery import OnFinding, checked_on_finding

__all__ = ["MonitorSettings", "check_settings"]

_INTERVALS_SECONDS = (0.001, 3600.0)
_MOST_SAMPLES = 100_000_000


def never(device_id: int) -> bool:
    """Return that no other monitor warns of a device."""
    del device_id
    return False


@dataclasses.dataclass(frozen=True)
class MonitorSettings:
    """The checked arguments of a `Monitor`, which documents them.

    `others_warn` is none of them: it tells whether another monitor warns of a device now, so that
    nobody sees every warning twice.
    """

    devices: tuple[int, ...] | None
    interval_seconds: float
    history: int
    faults: bool
    attribution: bool
    lines: bool
    on_finding: OnFinding
    thresholds: Thresholds
    driver: UvmDriver | str | None
    trace: Path | None
    publish: bool
    others_warn: Callable[[int], bool] = never

    def described(self) -> dict[str, str]:
        """Return what was set, by name, for people to read."""
        ways = self.on_finding if isinstance(self.on_finding, str) else "a function"
        return {
            "interval": f"{self.interval_seconds:g} s",
            "history": f"{self.history} samples of each device",
            "faults": "counted" if self.faults else "not counted",
            "attribution": "on" if self.attribution else "off",
            **({"lines": "on"} if self.lines else {}),
            "findings": "recorded" if self.on_finding is None else ways,
            **({"trace": str(self.trace)} if self.trace is not None else {}),
        }


def check_settings(
    *,
    devices: int | Iterable[int] | None,
    interval_seconds: float,
    history: int,
    faults: bool,
    attribution: bool,
    lines: bool,
    on_finding: OnFinding,
    thresholds: Thresholds | None,
    driver: UvmDriver | str | None,
    trace: str | os.PathLike[str] | None,
    publish: bool,
) -> MonitorSettings:
    """Return the settings of a `Monitor`.

    Raises
    ------
    ConfigurationError
        If one cannot be used; it names the argument.
    """
    least, most = _INTERVALS_SECONDS
    if not _is_number(interval_seconds) or not least <= interval_seconds <= most:
        raise ConfigurationError(
            f"interval_seconds={shown(interval_seconds)}: seconds between {least} and {most:g}"
        )
    if not isinstance(history, int) or isinstance(history, bool) or history < 2:
        raise ConfigurationError(
            f"history={shown(history)}: a number of samples to keep, at least 2"
        )
    if history > _MOST_SAMPLES:
        raise ConfigurationError(f"history={shown(history)}: at most {_MOST_SAMPLES:,} samples")
    if thresholds is not None and not isinstance(thresholds, Thresholds):
        raise ConfigurationError(
            f"thresholds={shown(thresholds)}: use rmm_uvm.watch.judging.thresholds.Thresholds, "
            "or None"
        )
    switches = {"faults": faults, "attribution": attribution, "lines": lines, "publish": publish}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name}={shown(value)}: use True or False")
    return MonitorSettings(
        _checked_devices(devices, driver),
        float(interval_seconds),
        history,
        faults,
        attribution,
        lines,
        checked_on_finding(on_finding),
        Thresholds.from_environment() if thresholds is None else thresholds,
        _checked_driver(driver),
        _checked_trace(trace),
        publish,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked_devices(
    devices: int | Iterable[int] | None, driver: UvmDriver | str | None
) -> tuple[int, ...] | None:
    if isinstance(driver, UvmDriver):
        own = driver.info.device_id
        if devices is None or devices == own:
            return (own,)
    if devices is None:
        return None
    ids = tuple(devices) if isinstance(devices, Iterable) else (devices,)
    wrong = [i for i in ids if not isinstance(i, int) or isinstance(i, bool) or i < 0]
    if not ids or wrong or len(set(ids)) != len(ids):
        raise ConfigurationError(f"devices={shown(devices)}: CUDA ordinals from 0, each once")
    if isinstance(driver, UvmDriver) and ids != (driver.info.device_id,):
        raise ConfigurationError(
            f"devices={shown(devices)}: the driver serves device {driver.info.device_id}; leave "
            "devices out"
        )
    return ids


def _checked_driver(driver: UvmDriver | str | None) -> UvmDriver | str | None:
    if driver is None or isinstance(driver, UvmDriver):
        return driver
    if not isinstance(driver, str):
        raise ConfigurationError(f"driver={shown(driver)}: {DRIVERS}")
    simulated_bytes(driver, f"driver={shown(driver)}")
    return driver


def _checked_trace(trace: str | os.PathLike[str] | None) -> Path | None:
    if trace is None:
        return None
    if not isinstance(trace, str | os.PathLike) or not os.fspath(trace):
        raise ConfigurationError(f"trace={shown(trace)}: the name of a file to write")
    return Path(trace)
