# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a worker: one frozen value from keywords, flags and Dask's configuration.

A keyword or flag comes before Dask's configuration, which comes before the default. Pure: nothing
is read here, and neither Dask nor RMM is needed.

A value is brought into its plain form: sizes as bytes or fractions, names with underscores, nothing
that JSON could not hold. So a setting can go through a configuration file, a command line and a
pickle, and two workers' settings can be compared. Whether a size fits the device is seen when the
pool is made.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.kinds import AnyOf, Count, Foreign, Size
from rmm_uvm.support.messages import meant, shown
from rmm_uvm.support.settings import SETTINGS, Setting
from rmm_uvm.support.units import VA_BLOCK_BYTES
from rmm_uvm.watch.judging.thresholds import Thresholds

__all__ = ["NAMES", "OF_COMM", "ON_WORKERS", "WorkerSettings", "checked", "settings_of"]

# Chunks are a quarter of it at most, and below 1 MiB each message costs more than its bytes; a size
# that is less than one such chunk is a unit that was forgotten.
_LEAST_IPC_BYTES = 1 << 20


def _monitor(value: Any, name: str) -> bool | dict[str, Any]:
    if isinstance(value, bool):
        return value
    found = _mapping(name, value, "true, false, or keywords of rmm_uvm.monitor")
    if refused := {"devices", "driver", "thresholds"} & set(found):
        raise ConfigurationError(
            f"monitor has {', '.join(map(repr, sorted(refused)))}: on a worker these are settings "
            "beside it, or its own"
        )
    return found


def _thresholds(value: Any, name: str) -> dict[str, Any]:
    found = _mapping(name, value, "a mapping of rmm_uvm.watch.judging.thresholds.Thresholds")
    Thresholds().changed(**found)
    return found


def _protocol(value: Any, name: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise ConfigurationError(f"{name}={shown(value)}: such as 'ucxuvm' or 'tcp'")


def _comm(value: Any, name: str) -> dict[str, Any]:
    found = _mapping(name, {} if value is None else value, "a mapping: {chunk-size: 8MiB}")
    if wrong := [each for each in found if each not in OF_COMM]:
        raise ConfigurationError(
            f"comm has {', '.join(map(shown, wrong[:3]))}: it can have {', '.join(OF_COMM)}"
        )
    return {each: OF_COMM[each].read(found[each], f"comm.{each}") for each in found}


def _seconds(value: Any, name: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= sys.float_info.max:
        raise ConfigurationError(f"{name}={shown(value)}: seconds, from 0")
    return value  # type: ignore[no-any-return]


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


OF_COMM: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "chunk_size",
            Size(is_fraction=False),
            "Size of one piece of a staged transfer.",
            otherwise="by the size of the IPC pool",
        ),
        Setting(
            "wait_seconds",
            Foreign("seconds, from 0", _seconds, ("number",)),
            "How long a transfer waits for a free chunk before it takes the slow way.",
            default=10,
        ),
    )
}
"""What `comm` has: settings of `rmm_uvm.dask.comm`, by name."""

# What differs on workers: they exchange data through the IPC pool, and each calls its own device 0.
_DIFFERENT: Mapping[str, Mapping[str, Any]] = {
    "maximum_pool_size": {
        "otherwise": f"{SETTINGS['maximum_pool_size'].otherwise}, of the host this worker's share",
    },
    "neighbors": {"sentence": f"{SETTINGS['neighbors'].sentence} A worker's own is 0."},
    "ipc_pool_size": {
        "kind": Size(
            automatic=True,
            least_bytes=_LEAST_IPC_BYTES,
            least_reason=", such as 256MiB, since results travel through it in chunks; null for "
            "none",
        ),
        "default": "auto",
    },
    "harvest_limit": {"kind": Size(is_fraction=False, least_bytes=VA_BLOCK_BYTES)},
    "monitor": {
        "kind": Foreign(
            "True, False, keywords of `rmm_uvm.monitor` (numbers, text, true, false)",
            _monitor,
            ("boolean", "object"),
        )
    },
}
_OF_DASK = (
    Setting(
        "thresholds",
        Foreign("fields of `Thresholds`, with dashes or underscores", _thresholds, ("object",)),
        "When the monitor warns, by rmm_uvm.watch.judging.thresholds.Thresholds.",
        otherwise="the environment's",
    ),
    Setting(
        "workers_per_host",
        Count("workers"),
        "How many workers share the host's memory, or the container's limit.",
        otherwise="found out from the worker's memory limit and `CUDA_VISIBLE_DEVICES`",
    ),
    Setting(
        "protocol",
        Foreign("text (of `local_cluster`; no flag)", _protocol, ("string",)),
        "Protocol of rmm_uvm.dask.local_cluster.",
        otherwise="`ucxuvm` where it can be, else `tcp`",
        option=None,
    ),
    Setting(
        "comm",
        Foreign("mapping of `chunk-size` and `wait-seconds`", _comm, ("object",)),
        "Of staged transfers.",
        default={name: setting.default for name, setting in OF_COMM.items()},
    ),
)

ON_WORKERS: Final[Mapping[str, Setting]] = {
    setting.name: dataclasses.replace(setting, **_DIFFERENT.get(setting.name, {}))
    for setting in (*SETTINGS.values(), *_OF_DASK)
    if setting.on_workers
}
"""Every setting of a worker, by name."""

NAMES: Final = tuple(ON_WORKERS)
"""Every setting, as Python spells it."""


@dataclasses.dataclass(frozen=True)
class WorkerSettings:
    """Settings of one worker, checked; `settings_of` makes them. Each is an attribute, too.

    Parameters
    ----------
    values : mapping of str to object
        The plain value of every one of `ON_WORKERS`, by name.
    """

    values: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {name: setting.default for name, setting in ON_WORKERS.items()}
    )

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def changed(self, keywords: Mapping[str, Any]) -> WorkerSettings:
        """Return these settings with some changed. Raises as `settings_of`."""
        changes = checked(keywords)
        if "comm" in changes:
            changes["comm"] = {**self.comm, **changes["comm"]}
        return WorkerSettings({**self.values, **changes})

    def arguments(self, host_sharers: int) -> dict[str, Any]:
        """Return the keywords for `rmm_uvm.reinitialize`.

        Parameters
        ----------
        host_sharers : int
            Workers that share the host's memory, >= 1.

        Raises
        ------
        ConfigurationError
            If a threshold in the environment cannot be used.
        """
        found = {name: value for name, value in self.values.items() if name in SETTINGS}
        if found["monitor"] is not False and self.thresholds is not None:
            thresholds = Thresholds.from_environment().changed(**self.thresholds)
            keywords = {} if found["monitor"] is True else found["monitor"]
            found["monitor"] = {**keywords, "thresholds": thresholds}
        return {**found, "host_sharers": host_sharers}


def settings_of(
    section: Mapping[str, Any] | None, keywords: Mapping[str, Any] | None = None
) -> WorkerSettings:
    """Return the settings that Dask's configuration and the keywords make together.

    Parameters
    ----------
    section : mapping of str to object, or None
        The section ``rmm-uvm``; keys with dashes or underscores.
    keywords : mapping of str to object, or None
        What comes before it: flags of a command line, keywords of a program.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value cannot be used; it is named.

    Examples
    --------
    >>> section = {"maximum-pool-size": "1GiB", "prefetch": "never"}
    >>> settings = settings_of(section, {"prefetch": "always"})
    >>> settings.maximum_pool_size, settings.prefetch, settings.ipc_pool_size
    (1073741824, 'always', 'auto')
    """
    if section is not None and not isinstance(section, Mapping):
        raise ConfigurationError(
            f"Dask's configuration has rmm-uvm: {shown(section)}, and it is a section of settings: "
            "rmm-uvm: {maximum-pool-size: 64GiB}"
        )
    return WorkerSettings().changed(section or {}).changed(keywords or {})


def checked(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return some settings as plain values, names as Python spells them.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value cannot be used; it is named.
    """
    found = {str(name).replace("-", "_"): value for name, value in keywords.items()}
    if wrong := [name for name in found if name not in NAMES]:
        raise ConfigurationError(
            f"rmm_uvm on Dask has no setting {', '.join(map(shown, wrong[:3]))}"
            f"{meant(wrong[0], NAMES)}: "
            f"there are {', '.join(NAMES)}"
        )
    return {name: _read(ON_WORKERS[name], value) for name, value in found.items()}


def _read(setting: Setting, value: Any) -> Any:
    if isinstance(value, str):
        return setting.read_text(value)
    if value is None and isinstance(setting.kind, AnyOf):
        return ()
    return setting.read(value)
