# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes in bytes: reading them from arguments and printing them.

Where both accept a value, `parse_bytes` gives the same result as RMM, whose own function cannot be
imported from Python. Unlike RMM it refuses booleans, negative sizes, fractions of a byte such as
"1.5" and sizes below a minimum, and it names the argument in the error.

Does not cover: alignment, and whether a size fits the machine (see `rmm_uvm.pool.sizing`).
"""

from __future__ import annotations

import math
import operator
import re
from typing import Final, SupportsIndex, TypeAlias

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.messages import shown

__all__ = [
    "VA_BLOCK_BYTES",
    "Bytes",
    "Size",
    "format_bytes",
    "parse_bytes",
    "parse_size",
    "whole_blocks",
    "whole_number",
]

Bytes: TypeAlias = SupportsIndex | str
"""A number of bytes: an integer, or a string such as ``"2GiB"``."""

Size: TypeAlias = SupportsIndex | str | float
"""`Bytes`, or a fraction of device memory (float, 0 < fraction <= 1)."""

VA_BLOCK_BYTES: Final = 2 << 20
"""A block: what the UVM kernel driver evicts, and a multiple of which a simulated device has."""

_MULTIPLIERS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)},
}
_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[+]?[0-9]+)?)[ \t]*((?:[kmgtp]i?)?b)?", re.I | re.A)
# Kubernetes, JVMs and dd take these; RMM, whose parser this one follows, does not.
_HALF_A_UNIT = re.compile(r"([0-9]+(?:\.[0-9]*)?[ \t]*)([kmgtp])i?", re.I | re.A)

# Sizes travel through C as signed 64-bit integers.
_MAXIMUM_BYTES = 2**63 - 1

_ACCEPTED = 'an integer or a string such as "512 MiB", "2GiB" or "2GB"'
_ACCEPTED_SIZE = f"{_ACCEPTED}, or a fraction of device memory (0 < fraction <= 1)"


def whole_number(value: object) -> int | None:
    """Return an integer of any kind, NumPy's too, as Python's; None for anything else.

    Examples
    --------
    >>> whole_number(3), whole_number(3.0), whole_number(True), whole_number("3")
    (3, None, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def parse_bytes(value: Bytes, name: str = "size", *, minimum_bytes: int = 1) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    value : int or str
        Bytes as an integer, or a string: a decimal number, optionally with an exponent, then an
        optional unit, in any case: ``B``, ``kB`` ... ``PB`` (powers of 1000) or ``KiB`` ... ``PiB``
        (powers of 1024). Of a number with a unit a fraction of a byte is cut off; without one it is
        an error.
    name : str
        Name of the argument, for the error message.
    minimum_bytes : int
        Smallest size accepted, in bytes; 0 or more.

    Returns
    -------
    int
        Size in bytes; ``minimum_bytes <= size < 2**63``.

    Raises
    ------
    ConfigurationError
        If `value` is no size, a boolean, below `minimum_bytes`, or 2**63 bytes or more.

    Examples
    --------
    >>> parse_bytes("2GiB"), parse_bytes("1.5 kB"), parse_bytes(4096)
    (2147483648, 1500, 4096)
    """
    return _checked(_bytes_of(value, name, _ACCEPTED), value, name, minimum_bytes)


def parse_size(value: Size, total_bytes: int, name: str = "size", *, minimum_bytes: int = 1) -> int:
    """Return a size in bytes, given in bytes or as a fraction of device memory.

    Parameters
    ----------
    value : int, str or float
        As for `parse_bytes`; a float is a fraction of `total_bytes`, ``0 < fraction <= 1``.
        So ``1`` is one byte, and ``1.0`` is the whole device.
    total_bytes : int
        Memory of the device, in bytes.
    name : str
        Name of the argument, for the error message.
    minimum_bytes : int
        Smallest size accepted, in bytes; 0 or more.

    Returns
    -------
    int
        Size in bytes, not compared with `total_bytes`: managed memory may exceed the device.

    Raises
    ------
    ConfigurationError
        As for `parse_bytes`, and if a float is not in (0, 1], NaN included.

    Examples
    --------
    >>> parse_size(0.5, total_bytes=16 * 2**30)
    8589934592
    """
    if isinstance(value, float):
        # Written so that NaN, which compares false with everything, is refused too.
        if not 0 < value <= 1:
            raise ConfigurationError(f"{name}={shown(value)}: expected {_ACCEPTED_SIZE}")
        size_bytes = int(value * total_bytes)
    else:
        size_bytes = _bytes_of(value, name, _ACCEPTED_SIZE)
    return _checked(size_bytes, value, name, minimum_bytes)


def format_bytes(size_bytes: int) -> str:
    """Return a size as text, with a binary unit and two decimals.

    Parameters
    ----------
    size_bytes : int
        Size in bytes; may be negative, as a difference of sizes can be.

    Examples
    --------
    >>> format_bytes(2**31), format_bytes(1000), format_bytes(-1536)
    ('2.00 GiB', '1000 B', '-1.50 KiB')
    """
    if abs(size_bytes) < 1024:
        return f"{size_bytes} B"
    scaled = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        scaled /= 1024
        # Compared after rounding: 1048575 bytes are "1.00 MiB", not "1024.00 KiB".
        if abs(round(scaled, 2)) < 1024:
            return f"{scaled:.2f} {unit}"
    return f"{scaled / 1024:.2f} PiB"


def _bytes_of(value: object, name: str, accepted: str) -> int:
    """Return the whole number of bytes that `value` names, of any sign and size."""
    if isinstance(value, str):
        match = _PATTERN.fullmatch(value.strip())
        if match is None:
            raise ConfigurationError(f"{name}={shown(value)}: {_meant(value)}expected {accepted}")
        # By way of a double, as RMM does, so that both round alike.
        amount = float(match[1]) * _MULTIPLIERS[(match[2] or "").lower()]
        if (match[2] or "").lower() in ("", "b") and math.isfinite(amount) and amount % 1:
            # RMM cuts it off, down to nothing. A unit was left out, or a share was meant.
            is_share = accepted is _ACCEPTED_SIZE and amount < 1
            meant = f"for a share give the number {amount:g}" if is_share else "give a unit"
            raise ConfigurationError(
                f"{name}={shown(value)}: no whole number of bytes: {meant}; expected {accepted}"
            )
        # An infinite amount is only too large; _checked says so.
        return int(amount) if math.isfinite(amount) else _MAXIMUM_BYTES + 1
    if (whole := whole_number(value)) is None:  # a float, too
        raise ConfigurationError(f"{name}={shown(value)}: expected {accepted}")
    return whole


def _meant(text: str) -> str:
    """Return which sizes with a whole unit may be meant, to be put before what is expected."""
    match = _HALF_A_UNIT.fullmatch(text.strip())
    if match is None:
        return ""
    amount, letter = match[1], match[2].upper()
    decimal = "kB" if letter == "K" else f"{letter}B"
    return f"write {amount}{letter}iB (powers of 1024) or {amount}{decimal} (of 1000); "


def _checked(size_bytes: int, value: object, name: str, minimum_bytes: int) -> int:
    """Return `size_bytes` if it lies within the bounds that every size has."""
    if size_bytes < minimum_bytes:
        bound = "greater than 0" if minimum_bytes == 1 else f"{minimum_bytes} bytes or more"
        raise ConfigurationError(f"{name}={shown(value)}: a size must be {bound}")
    if size_bytes > _MAXIMUM_BYTES:
        raise ConfigurationError(f"{name}={shown(value)}: a size must be below 2**63 bytes (8 EiB)")
    return size_bytes


def whole_blocks(nbytes: float) -> int:
    """Return a size rounded down to blocks of 2 MiB; one block at least.

    Examples
    --------
    >>> whole_blocks(5 << 20) >> 20, whole_blocks(1) >> 20
    (4, 2)
    """
    return max(int(nbytes) // VA_BLOCK_BYTES, 1) * VA_BLOCK_BYTES
