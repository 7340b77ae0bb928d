# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A machine as the model knows it: its rates and times, each with the place where it was found.

Covers one machine's values and the rules that they keep. Does not cover files (see
`rmm_uvm.simulator.machine`), nor measuring (see `rmm_uvm.simulator.measuring`).

Examples
--------
>>> from rmm_uvm.simulator.machine import load_machine
>>> machine = load_machine("gtx1080ti-pcie3")
>>> print(machine)
gtx1080ti-pcie3 (published only)
>>> load_machine("h200-pcie5").block_to_host_ns
87000.0
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator.constants import CONSTANTS

__all__ = ["CHANGED_SOURCE", "NAME_PATTERN", "Machine"]

CHANGED_SOURCE = "set by the program"
"""Source of a constant that `Machine.replace` gave another value."""

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a machine may be called: its name is that of its file, too."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine profile. Rates are bytes per nanosecond (GB/s), times nanoseconds.

    Attributes
    ----------
    name : str
        1 to 64 letters, digits, ``.``, ``_`` and ``-``.
    gpu, link : str
        What it is, in words.
    measured : bool
        The constants were measured on such a machine for this model. Otherwise they are
        published figures, and those of another machine where none are published.
    description, date, driver : str
        What stands for it, when, and on which driver; may be empty.
    sources : mapping of str to str
        Where each constant's value comes from, by its name.
    device_bytes ... launch_ns
        The constants; `rmm_uvm.simulator.constants.CONSTANTS` has their meanings.

    Raises
    ------
    ConfigurationError
        If a constant is out of its bounds, or the name is none.

    Notes
    -----
    Immutable, so safe in any thread.
    """

    name: str
    gpu: str
    link: str
    measured: bool
    description: str = ""
    date: str = ""
    driver: str = ""
    sources: Mapping[str, str] = field(hash=False, repr=False)

    device_bytes: int
    memory_bytes_per_ns: float
    to_device_bytes_per_ns: float
    to_host_bytes_per_ns: float
    copy_ns: float
    duplex_fraction: float
    remote_bytes_per_ns: float
    peer_bytes_per_ns: float
    peer_remote_bytes_per_ns: float
    call_ns: float
    deferred_call_ns: float
    block_to_device_ns: float
    block_to_host_ns: float
    discarded_to_host_ns: float
    host_page_ns: float
    resident_block_ns: float
    populate_block_ns: float
    refill_block_ns: float
    discard_block_ns: float
    discarded_block_ns: float
    prefetch_ramp_ns: float
    prefetch_ramp_blocks: float
    batch_ns: float
    fault_ns: float
    fault_block_ns: float
    unmap_ns: float
    duplicate_fraction: float
    outstanding_faults: int
    batch_faults: int
    discarded_fault_ns: float
    cpu_fault_ns: float
    allocate_managed_ns: float
    free_managed_ns: float
    allocate_device_ns: float
    free_device_ns: float
    launch_ns: float

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise ConfigurationError(
                f"machine name {self.name!r}: use 1 to 64 letters, digits, '.', '_' and '-', "
                "the first a letter or digit"
            )
        for name, constant in CONSTANTS.items():
            value = getattr(self, name)
            if problem := constant.problem(value):
                raise ConfigurationError(f"machine {self.name}: {name}={problem}")
            object.__setattr__(self, name, constant.converted(value))
        object.__setattr__(self, "sources", dict(self.sources))

    def __str__(self) -> str:
        """Return the name, and unless all of it was measured, the label."""
        return self.name if self.label == "measured" else f"{self.name} ({self.label})"

    @property
    def label(self) -> str:
        """What stands behind the figures: "measured" or "published only", and what changed."""
        basis = "measured" if self.measured else "published only"
        changed = self.changed
        if not changed:
            return basis
        listed = ", ".join(changed) if len(changed) <= 3 else f"{len(changed)} constants"
        return f"{basis}, changed: {listed}"

    @property
    def changed(self) -> tuple[str, ...]:
        """Constants that the program set, in the order of the files."""
        return tuple(name for name in CONSTANTS if self.sources.get(name) == CHANGED_SOURCE)

    def constants(self) -> dict[str, float]:
        """Return every constant by name; sizes and counts are integers."""
        return {name: getattr(self, name) for name in CONSTANTS}

    def replace(self, **changes: Any) -> Machine:
        """Return this machine with other values.

        Parameters
        ----------
        **changes : object
            Fields by name. A constant that changes gets the source "set by the program", unless
            `sources` is given too, and shows in `label`.

        Raises
        ------
        ConfigurationError
            If there is no such field, or a value is out of bounds.

        Examples
        --------
        >>> from rmm_uvm.simulator.machine import load_machine
        >>> print(load_machine("h200-pcie5").replace(copy_ns=0))
        h200-pcie5 (measured, changed: copy_ns)
        """
        known = {one.name for one in dataclasses.fields(self)}
        if unknown := sorted(set(changes) - known):
            raise ConfigurationError(f"a machine has no {unknown[0]!r}: use {sorted(known)}")
        if "sources" not in changes:
            new = {
                name: CHANGED_SOURCE
                for name in CONSTANTS
                if name in changes and changes[name] != getattr(self, name)
            }
            changes["sources"] = {**self.sources, **new}
        return dataclasses.replace(self, **changes)
