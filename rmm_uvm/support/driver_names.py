# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a driver is called where it is named: ``cuda``, ``simulated`` or ``simulated:SIZE``.

Pure: no driver is opened, so whoever only reads settings can check a name too.
"""

from __future__ import annotations

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.units import VA_BLOCK_BYTES, parse_bytes

__all__ = ["DRIVERS", "simulated_bytes"]

DRIVERS = "use 'cuda', 'simulated' or 'simulated:SIZE'"
"""What to do, for errors."""

_DEFAULT_BYTES = 16 << 30


def simulated_bytes(name: str, what: str) -> int | None:
    """Return the memory of the simulated device that a name means; None for a GPU.

    Parameters
    ----------
    name : str
        Of a driver.
    what : str
        What was written, and where, for the error.

    Raises
    ------
    ConfigurationError
        It is no driver's name, or no simulated device has such a size.

    Examples
    --------
    >>> simulated_bytes("simulated:64MiB", "driver='simulated:64MiB'")
    67108864
    >>> simulated_bytes("cuda", "driver='cuda'")
    """
    kind, _, size = name.partition(":")
    if kind == "cuda" and not size:
        return None
    if kind != "simulated":
        raise ConfigurationError(f"{what}: {DRIVERS}")
    if not size:
        return _DEFAULT_BYTES
    try:
        found_bytes = parse_bytes(size, "SIZE")
    except ConfigurationError as error:
        raise ConfigurationError(f"{what}: {error}") from None
    if found_bytes % VA_BLOCK_BYTES:
        raise ConfigurationError(
            f"{what}: a simulated device has a multiple of 2 MiB, such as simulated:64MiB"
        )
    return found_bytes
