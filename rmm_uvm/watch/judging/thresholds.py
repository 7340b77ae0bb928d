# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""When a monitor warns: every threshold in one frozen value, from arguments or the environment.

Does not cover what is compared with them, see `rmm_uvm.watch.judging.policy`.

Environment
-----------
RMM_UVM_WARN_FOOTPRINT, RMM_UVM_WARN_EVICTION, RMM_UVM_WARN_AMPLIFICATION,
RMM_UVM_WARN_HOST_MEMORY, RMM_UVM_WARN_DEVICE_TAKEN, RMM_UVM_WARN_PREFETCH, RMM_UVM_WARN_WAITING
    The threshold as a number > 0; ``off`` for no such warning.
RMM_UVM_WARN_MONITOR, RMM_UVM_WARN_BUDGET
    ``on`` or ``off``.
RMM_UVM_WARN_REPEAT_SECONDS
    Least time between two warnings of one kind.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import meant, shown

__all__ = ["Thresholds"]

_REARM_OF = {
    "footprint_factor": "footprint_rearm_factor",
    "eviction_fraction_per_second": "eviction_rearm_fraction_per_second",
    "amplification_factor": "amplification_rearm_factor",
    "host_memory_fraction": "host_memory_rearm_fraction",
    "waiting_fraction": "waiting_rearm_fraction",
}
_VARIABLES = {
    "RMM_UVM_WARN_FOOTPRINT": "footprint_factor",
    "RMM_UVM_WARN_EVICTION": "eviction_fraction_per_second",
    "RMM_UVM_WARN_AMPLIFICATION": "amplification_factor",
    "RMM_UVM_WARN_HOST_MEMORY": "host_memory_fraction",
    "RMM_UVM_WARN_DEVICE_TAKEN": "device_taken_fraction",
    "RMM_UVM_WARN_PREFETCH": "prefetch_fraction",
    "RMM_UVM_WARN_WAITING": "waiting_fraction",
}
_MONITOR_VARIABLE = "RMM_UVM_WARN_MONITOR"
_BUDGET_VARIABLE = "RMM_UVM_WARN_BUDGET"
_REPEAT_VARIABLE = "RMM_UVM_WARN_REPEAT_SECONDS"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Levels that a figure must exceed to become a finding, and fall below to be found again.

    Every kind has a threshold, ``> 0``; None switches the kind off.

    Parameters
    ----------
    footprint_factor : float or None
        Footprint over managed capacity. 1.0: from there on something must leave the device.
    footprint_rearm_factor : float
        A tenth below, so that a program that hovers at the edge is warned once.
    eviction_fraction_per_second : float or None
        Bytes evicted in a second, as a fraction of managed capacity. 0.001 is 140 MB/s on a card of
        140 GB: writing back at 24 GB/s takes less than 1 % of the time below that, which nobody
        would notice; real oversubscription is a hundred times more.
    eviction_rearm_fraction_per_second : float
        Half of it, for as many samples as the warning took.
    eviction_samples : int
        Samples in a row with that rate, >= 1. 3: one burst is over by then, and is no problem. One
        that follows another within half the usual interval does not count by itself.
    amplification_factor : float or None
        Bytes moved to the device while it evicts, over the footprint (or the capacity where the
        footprint is not known). One pass over data that do not fit moves each byte once, 1.0. From
        1.5 on the same bytes come again.
    amplification_rearm_factor : float
        Half of it.
    amplification_window_seconds : float
        Time over which those are counted. A minute holds several passes of a slow loop.
    host_memory_fraction : float or None
        Bytes still to be evicted over available host memory. 1.0: beyond, the kernel ends the
        process, since pages of managed memory cannot be swapped out.
    host_memory_rearm_fraction : float
        A fifth below: available host memory is a restless figure.
    device_taken_fraction : float or None
        Device memory that others hold, over all device memory, when managed memory alone would fit
        and is evicted all the same. 0.05: CUDA's own context is below on any card worth the name.
    prefetch_fraction : float or None
        Bytes that this package brought to the device, over all that came while it evicted. 0.5:
        most of what pushes pages out is ours.
    waiting_fraction : float or None
        Time in which requests waited to keep a budget, over the window. 0.25: the program takes a
        third longer than it would if all fitted.
    waiting_rearm_fraction : float
        Half of it.
    waiting_window_seconds : float
        Time over which that is counted: the whole of it, also if the monitor is younger.
    monitor : bool
        Say so when a source that ought to work does not.
    budget : bool
        Say so when a request is larger than a budget, and when its predictor turned itself off.
    repeat_seconds : float
        Least time between two findings of one kind on one device, >= 0.

    Raises
    ------
    ConfigurationError
        A value is not a number > 0, or something re-arms above its threshold.

    Examples
    --------
    >>> Thresholds(footprint_factor=None).footprint_factor is None
    True
    """

    footprint_factor: float | None = 1.0
    footprint_rearm_factor: float = 0.9
    eviction_fraction_per_second: float | None = 0.001
    eviction_rearm_fraction_per_second: float = 0.0005
    eviction_samples: int = 3
    amplification_factor: float | None = 1.5
    amplification_rearm_factor: float = 0.75
    amplification_window_seconds: float = 60.0
    host_memory_fraction: float | None = 1.0
    host_memory_rearm_fraction: float = 0.8
    device_taken_fraction: float | None = 0.05
    prefetch_fraction: float | None = 0.5
    waiting_fraction: float | None = 0.25
    waiting_rearm_fraction: float = 0.125
    waiting_window_seconds: float = 10.0
    monitor: bool = True
    budget: bool = True
    repeat_seconds: float = 60.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("monitor", "budget"):
                _check(value in (True, False), field.name, value, "True or False")
            elif field.name == "eviction_samples":
                whole = isinstance(value, int) and not isinstance(value, bool)
                _check(whole and value >= 1, field.name, value, "an integer >= 1")
            elif field.name == "repeat_seconds":
                _check(_is_number(value) and value >= 0, field.name, value, "a number >= 0")
            elif value is not None or "None" not in str(field.type):
                _check(_is_number(value) and value > 0, field.name, value, "a number > 0")
        for name, rearm_name in _REARM_OF.items():
            threshold, rearm = getattr(self, name), getattr(self, rearm_name)
            if threshold is not None:
                bound = f"at most {name}, which is {threshold:g}"
                _check(rearm <= threshold, rearm_name, rearm, bound)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Thresholds:
        """Return the thresholds that the environment asks for.

        Where a threshold changes, what re-arms it changes in proportion.

        Parameters
        ----------
        environment : mapping of str to str, optional
            The process' environment by default.

        Raises
        ------
        ConfigurationError
            A variable is neither a number > 0 nor ``off``; it is named.

        Examples
        --------
        >>> chosen = Thresholds.from_environment({"RMM_UVM_WARN_FOOTPRINT": "2"})
        >>> chosen.footprint_factor, chosen.footprint_rearm_factor
        (2.0, 1.8)
        """
        source = os.environ if environment is None else environment
        chosen: dict[str, Any] = {}
        for variable, name in _VARIABLES.items():
            text = source.get(variable, "").strip()
            if not text:
                continue
            if text.lower() == "off":
                chosen[name] = None
                continue
            value = chosen[name] = _number(variable, text, "a number > 0, or 'off'")
            _check(value > 0, variable, text, "a number > 0, or 'off'")
        for variable, name in ((_MONITOR_VARIABLE, "monitor"), (_BUDGET_VARIABLE, "budget")):
            if text := source.get(variable, "").strip():
                _check(text.lower() in ("on", "off"), variable, text, "'on' or 'off'")
                chosen[name] = text.lower() == "on"
        if text := source.get(_REPEAT_VARIABLE, "").strip():
            seconds = chosen["repeat_seconds"] = _number(_REPEAT_VARIABLE, text, "a number >= 0")
            _check(seconds >= 0, _REPEAT_VARIABLE, text, "a number >= 0")
        return cls().changed(**chosen)

    def changed(self, **changes: Any) -> Thresholds:
        """Return these thresholds with some of them changed.

        Where a threshold changes, what re-arms it changes in proportion, unless it is named too.

        Parameters
        ----------
        **changes
            By name of the field.

        Raises
        ------
        ConfigurationError
            There is no such field, or a value cannot be used.

        Examples
        --------
        >>> Thresholds().changed(host_memory_fraction=0.5).host_memory_rearm_fraction
        0.4
        """
        known = [field.name for field in dataclasses.fields(self)]
        if wrong := [name for name in changes if name not in known]:
            raise ConfigurationError(
                f"thresholds have no {', '.join(map(shown, wrong[:3]))}{meant(wrong[0], known)}: "
                f"they have {', '.join(known)}"
            )
        chosen = dict(changes)
        for name, rearm_name in _REARM_OF.items():
            value = changes.get(name)
            if rearm_name in changes or not _is_number(value):
                continue
            base = self if getattr(self, name) is not None else Thresholds()  # it was off
            chosen[rearm_name] = getattr(base, rearm_name) * (value / getattr(base, name))
        return dataclasses.replace(self, **chosen)


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # neither NaN nor an integer that no float can hold


def _check(good: bool, name: str, value: object, wanted: str) -> None:  # noqa: FBT001
    if not good:
        raise ConfigurationError(f"{name} is {shown(value)}: use {wanted}")


def _number(variable: str, text: str, wanted: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    _check(math.isfinite(value), variable, text, wanted)
    return value
