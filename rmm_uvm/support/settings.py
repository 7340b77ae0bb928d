# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every setting of a managed pool, once: its name, values, default, variable and meaning.

`rmm_uvm.reinitialize`, `rmm_uvm.managed_pool` and the other calls that take a setting, the options
of ``rmm-uvm run`` and ``rmm-uvm mortgage``, the environment variables, and Dask's configuration and
flags read it by this table. ``ci/write_settings.py`` writes the tables of docs/use/configuration.md
and both YAML files of `rmm_uvm.dask` from it. To add a setting, add an entry and use it.

Imports nothing that is slow, so that command lines can offer the settings at once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, ParamSpec, TypeVar

from rmm_uvm.support.kinds import (
    AnyOf,
    Count,
    Devices,
    DriverName,
    Foreign,
    Kind,
    Limit,
    OneOf,
    Size,
)
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = [
    "EVICTION_POLICIES",
    "LEAST_BUDGET_BYTES",
    "LIBRARIES",
    "OF_TORCH",
    "PREFETCH_MODES",
    "SETTINGS",
    "Activations",
    "CudfPrefetch",
    "Evict",
    "PrefetchMode",
    "Setting",
    "reads_settings",
]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

PrefetchMode = Literal["auto", "always", "never"]
CudfPrefetch = bool | Literal["auto"]
Evict = Literal["all", "activations"]
Activations = Literal["migrate", "copy", "auto"]

LIBRARIES: Final = ("cupy", "numba", "torch")
"""The libraries that can be let allocate through RMM."""

_NO_LIBRARIES: Final = {
    "jax": "XLA allocates JAX's memory, and takes no other allocator. Leave 'jax' out, and set "
    "XLA_PYTHON_CLIENT_PREALLOCATE=false, so that JAX leaves memory to the pool"
}
"""The libraries that cannot, and why."""

LEAST_BUDGET_BYTES: Final = 4 * VA_BLOCK_BYTES
"""With less nothing could be moved while something else is used."""

PREFETCH_MODES: Final[Mapping[PrefetchMode, str]] = {
    "auto": "only what may have left the device",
    "always": "every allocation, every time",
    "never": "as asked",
}
"""What is prefetched when memory is allocated, by mode, in words."""

EVICTION_POLICIES: Final[Mapping[str, str]] = {
    "fifo": "what came first leaves first",
    "lru": "what was used longest ago leaves first",
    "repeat": "what the last iteration used last leaves first; lru where none repeats",
    "correlation": "what is not expected next leaves first; lru where little is foreseen",
}
"""Which live blocks leave first, by policy, in words. The policies are C++
(``cpp/include/rmm_uvm/residency/eviction_policy.hpp``)."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting, as every place that takes it has it.

    Parameters
    ----------
    name : str
        As Python's keyword.
    kind : Kind
        What values it takes.
    sentence : str
        What it does, for help, comments and documents.
    more : str
        What documents say besides.
    default : object
        Where nothing is given; None for what `otherwise` says.
    otherwise : str
        What is used for None; empty where None is not accepted. With a default None is no default.
    variable : str
        The environment variable that is read where nothing is given; empty for none.
    objects : str
        What Python calls take besides, in words.
    option : str or None
        Of ``rmm-uvm run``; None where it has none. By default the name with dashes.
    on_workers : bool
        A Dask worker can be given it.
    """

    name: str
    kind: Kind
    sentence: str
    more: str = ""
    default: Any = None
    otherwise: str = ""
    variable: str = ""
    objects: str = ""
    option: str | None = ""
    on_workers: bool = True

    def __post_init__(self) -> None:
        if self.option == "":
            object.__setattr__(self, "option", f"--{self.key}")

    @property
    def key(self) -> str:
        """Its name in Dask's configuration and on command lines."""
        return self.name.replace("_", "-")

    @property
    def default_words(self) -> str:
        """The default, as text."""
        plain, words = self.default, self.otherwise
        if not self.otherwise or plain is not None:
            words = ", ".join(plain) if isinstance(plain, tuple) else str(plain)
        return f"{self.variable}, else {words}" if self.variable else words

    def read(self, value: Any, name: str = "") -> Any:
        """Return the plain form of what a call was given.

        Parameters
        ----------
        value : object
            As it was given. None is plain where something is used then.
        name : str
            What the setting is called there; by default its name.

        Raises
        ------
        ConfigurationError
            If it cannot be used: what was given, and what is accepted.

        Examples
        --------
        >>> SETTINGS["device_budget"].read("12GiB"), SETTINGS["device_budget"].read("80%")
        (12884901888, 0.8)
        """
        if value is None and self.otherwise:
            return None
        return self.kind.read(value, name or self.name)

    def read_text(self, text: str, name: str = "") -> Any:
        """Return the plain form of text of a variable or a command line; as `read`.

        Examples
        --------
        >>> SETTINGS["neighbors"].read_text("1,2"), SETTINGS["neighbors"].read_text("none")
        ((1, 2), None)
        """
        return self.kind.read_text(text.strip(), name or self.name)

    def of_environment(self) -> Any:
        """Return the plain form of what its variable says; None where it says nothing.

        Raises
        ------
        ConfigurationError
            If the variable is set and cannot be used.
        """
        text = os.environ.get(self.variable, "").strip() if self.variable else ""
        return self.read_text(text, self.variable) if text else None


def _of_rmm(name: str, kind: Kind, sentence: str, **more: Any) -> Setting:
    """Return a setting that `rmm.reinitialize` has, too: of Python's calls alone."""
    return Setting(name, kind, sentence, option=None, on_workers=False, **more)


SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "initial_pool_size",
            Size(),
            "First slab of the pool.",
            "At least 64 MiB when little is free.",
            otherwise="the budget; without one half of the free device memory",
            option="--pool-size",
        ),
        Setting(
            "maximum_pool_size",
            Size(),
            "Where MemoryError begins.",
            "It counts what is live, in blocks of 2 MiB that may take up to a tenth more: "
            "[decisions/0034](../understand/decisions/0034-what-the-maximum-counts.md). "
            "Why: [decisions/0002](../understand/decisions/0002-maximum-size.md). "
            "Up to device plus host can be "
            "asked for, with a warning. Several `devices` share the host and the cap evenly.",
            otherwise="the larger of free device memory and 90 % of available host memory (the "
            "container's limit counts)",
            option="--maximum",
        ),
        _of_rmm(
            "devices",
            Foreign("ordinal, list"),
            "CUDA devices. On others the pools of earlier calls stay.",
            default=0,
        ),
        _of_rmm(
            "logging",
            Foreign("True, False"),
            "Log every allocation with RMM's logging adaptor; needs a GPU.",
            default=False,
        ),
        _of_rmm(
            "log_file_name",
            Foreign("file"),
            "Of that log.",
            otherwise="`RMM_LOG_FILE`",
        ),
        Setting(
            "prefetch",
            OneOf(PREFETCH_MODES),
            "Which allocations are prefetched: what may have left the device, all, none.",
            default="auto",
        ),
        Setting(
            "ipc_pool_size",
            Size(automatic=True),
            "Size of a separate cudaMalloc pool for CUDA IPC, taken from managed capacity.",
            "Auto: 256 MiB, or an eighth of the device if that is less.",
            otherwise="none",
            option=None,
        ),
        Setting(
            "device_budget",
            Size(
                automatic=True,
                absent=True,
                least_bytes=LEAST_BUDGET_BYTES,
                least_reason=" are needed to move anything",
            ),
            "How much managed memory is kept on each device.",
            "What is over it leaves, dead data without a copy. At most the device. Auto: what "
            "others leave of the device, less a reserve, followed while the program runs; a "
            "variable that is set comes before it. None: the kernel driver evicts. See "
            "[budget.md](budget.md).",
            default="auto",
            otherwise="none",
            variable="RMM_UVM_DEVICE_BUDGET",
            objects="`rmm_uvm.residency.Budget`",
        ),
        Setting(
            "eviction",
            OneOf(EVICTION_POLICIES),
            "With a budget, which live data leave first.",
            otherwise="`repeat`",
            variable="RMM_UVM_EVICTION",
        ),
        Setting(
            "neighbors",
            Devices(),
            "With a budget, devices whose idle memory takes what leaves, before the host.",
            "See [budget.md](budget.md).",
            otherwise="none",
            variable="RMM_UVM_NEIGHBORS",
        ),
        Setting(
            "harvest_limit",
            Limit(),
            "Most bytes on each neighbour.",
            otherwise="no limit",
            variable="RMM_UVM_HARVEST_LIMIT",
            option=None,
        ),
        Setting(
            "libraries",
            AnyOf(LIBRARIES, _NO_LIBRARIES),
            "Libraries to let allocate through RMM.",
            "torch, which without memory raises torch.OutOfMemoryError, cannot be undone in a "
            "process; numba must not have used a GPU before.",
            default=("cupy",),
        ),
        Setting(
            "cudf_prefetch",
            OneOf(
                {
                    "auto": "on only while pages leave the device",
                    True: "on",
                    False: "off",
                }
            ),
            "libcudf's own prefetch on column access.",
            "Auto: on only while pages leave the device, see "
            "[decisions/0004](../understand/decisions/0004-cudf-prefetch.md).",
            default="auto",
            option=None,
        ),
        Setting(
            "driver",
            DriverName(),
            "Where to install: a GPU or a simulated device.",
            otherwise="`cuda`",
            variable="RMM_UVM_DRIVER",
            objects="driver",
            option=None,
        ),
        Setting(
            "monitor",
            Foreign("True, False, keywords of `rmm_uvm.monitor` as a mapping"),
            "Watch the devices and warn, until `restore`.",
            "See below.",
            default=True,
            option=None,
        ),
        Setting(
            "host_sharers",
            Count("processes"),
            "Processes with such a pool that share the host's memory evenly.",
            "The default maximum counts a share. Dask workers find it out.",
            default=1,
            option=None,
            on_workers=False,
        ),
        _of_rmm(
            "pool_allocator",
            Foreign("True"),
            "For programs that gave it to `rmm.reinitialize`: what is installed is a pool.",
            default=True,
        ),
        _of_rmm(
            "managed_memory",
            Foreign("True"),
            "For programs that gave it to `rmm.reinitialize`: what is installed is managed.",
            default=True,
        ),
    )
}
"""Settings of the pool by name, in the order of documents and command lines."""

OF_TORCH: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "evict",
            OneOf(
                {
                    "all": "everything",
                    "activations": "neither parameters nor the state of optimisers",
                }
            ),
            "With --torch: what may leave the device.",
            default="all",
        ),
        Setting(
            "activations",
            OneOf(
                {
                    "migrate": "as any other memory",
                    "copy": "to pinned host memory beside the kernels, and back ahead of their use",
                    "auto": "computed again where that is possible, and copied otherwise",
                }
            ),
            "With --torch: how what autograd keeps leaves.",
            default="migrate",
        ),
    )
}
"""Settings of `rmm_uvm.torch.install` alone, by name."""


def reads_settings(
    then: Callable[[Any, dict[str, Any]], object] = lambda result, given: None,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Return a decorator for functions whose parameters are settings.

    The function is called with the plain form of each, or not at all: `ConfigurationError` says
    which cannot be used. Objects that a setting takes besides go through as they are.

    Parameters
    ----------
    then : callable
        Is called after the function with its result, and with what it was given, by name.
    """

    def decorated(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # says it in Python's own words
            bound.apply_defaults()
            given = dict(bound.arguments)
            for name, value in given.items():
                setting = SETTINGS.get(name)
                if setting is not None and not (setting.objects and not _is_plain(value)):
                    bound.arguments[name] = setting.read(value)
                    if isinstance(value, Iterator):  # it can be read only once
                        given[name] = bound.arguments[name]
            result = function(*bound.args, **bound.kwargs)
            then(result, given)
            return result

        return call

    return decorated


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bytes | list | tuple | Mapping)
