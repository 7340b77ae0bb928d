# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a value can be that of a setting; each check returns it in its plain form.

Plain: sizes as bytes or fractions, names with underscores, nothing that JSON could not hold. So a
setting can go through a configuration file, a command line and a pickle, and two workers' settings
can be compared. Whether a size fits the device is seen when the pool is made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.driver_names import DRIVERS, simulated_bytes
from rmm_uvm.residency.budget import Budget
from rmm_uvm.residency.neighbors import checked_limit, checked_neighbors, neighbors_in
from rmm_uvm.residency.policies import POLICIES
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import format_bytes, parse_bytes, parse_size
from rmm_uvm.watch.judging.thresholds import Thresholds

__all__ = ["CHECKS"]

# Chunks are a quarter of it at most, and below 1 MiB each message costs more than its bytes; a size
# that is less than one such chunk is a unit that was forgotten.
_LEAST_IPC_BYTES = 1 << 20
_LIBRARIES = ("cupy", "torch")
_COMM = ("chunk_size", "wait_seconds")


def _size(name: str) -> Callable[[Any], Any]:
    def check(value: Any) -> int | float | None:
        if value is None:
            return None
        if isinstance(value, float):
            parse_size(value, 1 << 40, name)  # is it a fraction?
            return value
        return parse_bytes(value, name)

    return check


def _device_budget(value: Any) -> int | float | None:
    found: int | float | None = _size("device_budget")(value)
    if isinstance(found, int):
        Budget(found)  # is it large enough for one? What is too large, the device tells
    return found


def _ipc_pool_size(value: Any) -> int | float | str | None:
    if value == "auto":
        return "auto"
    found: int | float | None = _size("ipc_pool_size")(value)
    if isinstance(found, int) and found < _LEAST_IPC_BYTES:
        raise ConfigurationError(
            f"ipc_pool_size={shown(value)}: {format_bytes(_LEAST_IPC_BYTES)} at least, such as "
            "256MiB, since results travel through it in chunks; null for none"
        )
    return found


def _one_of(name: str, allowed: tuple[Any, ...]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        for each in allowed:  # 1 is not True
            if type(value) is type(each) and value == each:
                return each
        raise ConfigurationError(f"{name}={shown(value)}: use {', '.join(map(repr, allowed))}")

    return check


def _libraries(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if isinstance(names, Iterable):
        names = tuple(name.strip() if isinstance(name, str) else name for name in names)
        names = tuple(name for name in names if name != "")
        if all(name in _LIBRARIES for name in names):
            return names
    raise ConfigurationError(f"libraries={shown(value)}: a list of 'cupy' and 'torch', [] for none")


def _monitor(value: Any) -> bool | dict[str, Any]:
    if isinstance(value, bool):
        return value
    found = _mapping("monitor", value, "true, false, or keywords of rmm_uvm.monitor")
    if refused := {"devices", "driver", "thresholds"} & set(found):
        raise ConfigurationError(
            f"monitor has {', '.join(map(repr, sorted(refused)))}: on a worker these are settings "
            "beside it, or its own"
        )
    return found


def _thresholds(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    found = _mapping(
        "thresholds", value, "a mapping of rmm_uvm.watch.judging.thresholds.Thresholds"
    )
    Thresholds().changed(**found)
    return found


def _driver(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigurationError(f"driver={shown(value)}: {DRIVERS}")
    # Before a worker is started for it.
    simulated = simulated_bytes(value, f"driver={shown(value)}") is not None
    return value if simulated else "cuda"


def _workers_per_host(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ConfigurationError(f"workers_per_host={shown(value)}: a number of workers, from 1")


def _neighbors(value: Any) -> str | tuple[int, ...] | None:
    return checked_neighbors(neighbors_in(value) if isinstance(value, str) else value)


def _harvest_limit(value: Any) -> int | None:
    if isinstance(value, Mapping):  # every worker calls its own device 0
        raise ConfigurationError(f"harvest_limit={shown(value)}: use one size for all neighbours")
    limit = checked_limit(value)
    assert not isinstance(limit, dict)
    return limit


def _protocol(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigurationError(f"protocol={shown(value)}: such as 'ucxuvm' or 'tcp'")


def _comm(value: Any) -> dict[str, Any]:
    found = _mapping("comm", {} if value is None else value, "a mapping: {chunk-size: 8MiB}")
    if wrong := [name for name in found if name not in _COMM]:
        raise ConfigurationError(
            f"comm has {', '.join(map(shown, wrong[:3]))}: it can have {', '.join(_COMM)}"
        )
    if (size := found.get("chunk_size")) is not None:
        found["chunk_size"] = parse_bytes(size, "comm.chunk_size")
    seconds = found.get("wait_seconds", 0)
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= sys.float_info.max:
        raise ConfigurationError(f"comm.wait_seconds={shown(seconds)}: seconds, from 0")
    return found


def _mapping(name: str, value: Any, wanted: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name}={shown(value)}: use {wanted}")
    found = {str(key).replace("-", "_"): each for key, each in value.items()}
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{name}={shown(value)}: workers are other processes, so only numbers, text, true and "
            "false"
        ) from None
    return found


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "initial_pool_size": _size("initial_pool_size"),
    "maximum_pool_size": _size("maximum_pool_size"),
    "device_budget": _device_budget,
    "eviction": _one_of("eviction", (*POLICIES, None)),
    "neighbors": _neighbors,
    "harvest_limit": _harvest_limit,
    "ipc_pool_size": _ipc_pool_size,
    "prefetch": _one_of("prefetch", ("auto", "always", "never")),
    "libraries": _libraries,
    "cudf_prefetch": _one_of("cudf_prefetch", ("auto", True, False)),
    "monitor": _monitor,
    "driver": _driver,
    "thresholds": _thresholds,
    "workers_per_host": _workers_per_host,
    "protocol": _protocol,
    "comm": _comm,
}
"""By setting; each raises `ConfigurationError` with the name, the value and what can be used."""
