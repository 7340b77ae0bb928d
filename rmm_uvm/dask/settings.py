# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker is told: one frozen value from keywords, flags and Dask's configuration.

A keyword or flag comes before Dask's configuration, which comes before the default. Pure: nothing
is read here, and neither Dask nor RMM is needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rmm_uvm.dask.checks import CHECKS
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown
from rmm_uvm.watch.judging.thresholds import Thresholds

__all__ = ["NAMES", "WorkerSettings", "checked", "settings_of"]

Size = int | float | None  # bytes, or a fraction of device memory


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker, checked; `settings_of` makes them.

    Parameters
    ----------
    initial_pool_size, maximum_pool_size : int, float or None
        As in `rmm_uvm.reinitialize`: bytes, or a fraction (0 to 1) of device memory.
    device_budget : int, float or None
        As in `rmm_uvm.reinitialize`: bytes, or a fraction (0 to 1) of device memory.
    eviction : str or None
        As in `rmm_uvm.reinitialize`; needs a budget.
    neighbors : "auto", tuple of int, or None
        As in `rmm_uvm.reinitialize`; needs a budget.
    harvest_limit : int or None
        Bytes; as in `rmm_uvm.reinitialize`.
    ipc_pool_size : int, float, "auto" or None
        As in `rmm_uvm.reinitialize`.
    prefetch, cudf_prefetch, libraries, monitor, driver
        As in `rmm_uvm.reinitialize`.
    thresholds : mapping of str to object, or None
        Fields of `rmm_uvm.watch.judging.thresholds.Thresholds` that differ from the environment's.
    workers_per_host : int or None
        Workers that share the host's memory, >= 1; None to find out.
    protocol : str or None
        Of `rmm_uvm.dask.local_cluster`.
    comm : mapping of str to object
        ``chunk_size`` (bytes or None) and ``wait_seconds``; see `rmm_uvm.dask.comm`.
    """

    initial_pool_size: Size = None
    maximum_pool_size: Size = None
    device_budget: Size = None
    eviction: str | None = None
    neighbors: str | tuple[int, ...] | None = None
    harvest_limit: int | None = None
    prefetch: str = "auto"
    ipc_pool_size: Size | str = "auto"
    libraries: tuple[str, ...] = ("cupy",)
    cudf_prefetch: bool | str = "auto"
    monitor: bool | Mapping[str, Any] = True
    driver: str | None = None
    thresholds: Mapping[str, Any] | None = None
    workers_per_host: int | None = None
    protocol: str | None = None
    comm: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {"chunk_size": None, "wait_seconds": 10}
    )

    def changed(self, keywords: Mapping[str, Any]) -> WorkerSettings:
        """Return these settings with some changed. Raises as `settings_of`."""
        changes = checked(keywords)
        if "comm" in changes:
            changes["comm"] = {**self.comm, **changes["comm"]}
        return dataclasses.replace(self, **changes)

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
        monitor = self.monitor
        if monitor is not False and self.thresholds is not None:
            thresholds = Thresholds.from_environment().changed(**self.thresholds)
            monitor = {**({} if monitor is True else monitor), "thresholds": thresholds}
        return {
            "initial_pool_size": self.initial_pool_size,
            "maximum_pool_size": self.maximum_pool_size,
            "device_budget": self.device_budget,
            "eviction": self.eviction,
            "neighbors": self.neighbors,
            "harvest_limit": self.harvest_limit,
            "prefetch": self.prefetch,
            "ipc_pool_size": self.ipc_pool_size,
            "libraries": self.libraries,
            "cudf_prefetch": self.cudf_prefetch,
            "monitor": monitor,
            "driver": self.driver,
            "host_sharers": host_sharers,
        }


NAMES = tuple(field.name for field in dataclasses.fields(WorkerSettings))
"""Every setting, as Python spells it."""


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
            f"rmm_uvm on Dask has no setting {', '.join(map(shown, wrong[:3]))}: "
            f"there are {', '.join(NAMES)}"
        )
    return {name: CHECKS[name](value) for name, value in found.items()}
