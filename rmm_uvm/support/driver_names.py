# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The names of drivers: ``cuda``, ``simulated``, ``simulated:SIZE@MACHINE``.

No driver is opened, so whoever only reads settings can check a name too.
"""

from __future__ import annotations

from typing import NamedTuple

from rmm_uvm.errors import ConfigurationError, UvmError
from rmm_uvm.support.machine_files import Machine, load_machine
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes

__all__ = ["DRIVERS", "SimulatedName", "simulated_bytes", "simulated_named"]

DRIVERS = "use 'cuda', 'simulated', 'simulated:SIZE' or 'simulated:SIZE@MACHINE'"
"""What to do, for errors."""

_DEFAULT_BYTES = 16 << 30


class SimulatedName(NamedTuple):
    """The simulated device that a name means: its memory, and its machine if one is named."""

    memory_bytes: int
    machine: Machine | None


def simulated_named(name: str, what: str) -> SimulatedName | None:
    """Return the simulated device that a name means; None for a GPU.

    Parameters
    ----------
    name : str
        Of a driver.
    what : str
        What was written, and where, for the error.

    Raises
    ------
    ConfigurationError
        It is no driver's name, no simulated device has such a size, or there is no such machine,
        or no machine in its file.

    Examples
    --------
    >>> found = simulated_named("simulated:64MiB@a100-pcie4", "driver='simulated:64MiB@...'")
    >>> found.memory_bytes, str(found.machine)
    (67108864, 'a100-pcie4 (published only)')
    >>> simulated_named("cuda", "driver='cuda'")
    """
    kind, _, rest = name.partition(":")
    if kind == "cuda" and not rest:
        return None
    if kind != "simulated":
        raise ConfigurationError(f"{what}: {DRIVERS}")
    if not rest:
        return SimulatedName(_DEFAULT_BYTES, None)
    size, at, machine = rest.partition("@")
    try:
        found_bytes = parse_bytes(size, "SIZE")
        found_machine = load_machine(machine) if at else None
    except UvmError as error:
        raise ConfigurationError(f"{what}: {error}") from None
    if found_bytes % VA_BLOCK_BYTES:
        raise ConfigurationError(
            f"{what}: a simulated device has a multiple of 2 MiB, such as simulated:64MiB"
        )
    return SimulatedName(found_bytes, found_machine)


def simulated_bytes(name: str, what: str) -> int | None:
    """Return the memory of the simulated device that a name means, as `simulated_named`.

    Examples
    --------
    >>> simulated_bytes("simulated:64MiB", "driver='simulated:64MiB'")
    67108864
    """
    found = simulated_named(name, what)
    return None if found is None else found.memory_bytes
