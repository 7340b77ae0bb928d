# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes: reading them wherever they are written, and printing them.

A size means the same in a Python call, an environment variable, an option of a command and Dask's
configuration: every one of them reads it here.

- A whole number, or text of one such as "4096", is bytes.
- Text with a unit is bytes: "2GiB" (powers of 1024) or "2GB" (powers of 1000).
- A number with a point, 0 < number <= 1, is a fraction of device memory: 0.9, or "0.9" as text. So
  1 is one byte, and 1.0 is the whole device.
- A percentage such as "90%" is such a fraction too.

Where both accept a value, bytes are the same as RMM's, whose own function cannot be imported from
Python. Unlike RMM, booleans, negative sizes, fractions of a byte and sizes below a minimum are
refused, and the error names the argument.

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
    "MAXIMUM_BYTES",
    "VA_BLOCK_BYTES",
    "Bytes",
    "Size",
    "format_bytes",
    "parse_bytes",
    "parse_size",
    "read_size",
    "whole_blocks",
    "whole_number",
]

Bytes: TypeAlias = SupportsIndex | str
"""A number of bytes: an integer, or a string such as ``"2GiB"``."""

Size: TypeAlias = SupportsIndex | str | float
"""`Bytes`, or a fraction of device memory: 0.9, "0.9" or "90%"."""

VA_BLOCK_BYTES: Final = 2 << 20
"""A block: what the UVM kernel driver evicts, and a multiple of which a simulated device has."""

_MULTIPLIERS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)},
}
_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[+]?[0-9]+)?)[ \t]*((?:[kmgtp]i?)?b)?", re.I | re.A)
# A number as Python writes one that is not whole, without a unit.
_POINT = re.compile(r"(?=.*[.]|.*e-)([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.I | re.A)
_PERCENT = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)[ \t]*%", re.A)
# Kubernetes, JVMs and dd take these; RMM, whose parser this one follows, does not.
_HALF_A_UNIT = re.compile(r"([0-9]+(?:\.[0-9]*)?[ \t]*)([kmgtp])i?", re.I | re.A)

MAXIMUM_BYTES = 2**63 - 1
"""The largest size: sizes travel through C as signed 64-bit integers."""

_ACCEPTED = 'an integer or a string such as "512 MiB", "2GiB" or "2GB"'
_ACCEPTED_SIZE = f'{_ACCEPTED}, or a fraction of device memory such as 0.9 or "90%"'


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
    if _fraction_of(value) is None:
        return _bytes_of(value, name, _ACCEPTED, minimum_bytes)
    why = ""
    if isinstance(value, str):
        why = "a fraction of a device, and none is meant here: give a unit; "
    raise ConfigurationError(f"{name}={shown(value)}: {why}expected {_ACCEPTED}")


def read_size(value: Size, name: str = "size", *, minimum_bytes: int = 1) -> int | float:
    """Return a size in its plain form: bytes, or a fraction of a device that is not known yet.

    Parameters
    ----------
    value : int, str or float
        Bytes as for `parse_bytes`, or a fraction of device memory: 0.9, "0.9" or "90%".
    name : str
        Name of the argument, for the error message.
    minimum_bytes : int
        Smallest size accepted, in bytes; 0 or more.

    Returns
    -------
    int or float
        Bytes, ``minimum_bytes <= size < 2**63``; or a fraction, ``0 < fraction <= 1``.

    Raises
    ------
    ConfigurationError
        As for `parse_bytes`, and if a fraction is not in (0, 1], NaN included.

    Examples
    --------
    >>> read_size("2GiB"), read_size("90%"), read_size("0.9"), read_size(1), read_size(1.0)
    (2147483648, 0.9, 0.9, 1, 1.0)
    """
    fraction = _fraction_of(value)
    if fraction is None:
        return _bytes_of(value, name, _ACCEPTED_SIZE, minimum_bytes)
    # Written so that NaN, which compares false with everything, is refused too.
    if not 0 < fraction <= 1:
        more = "a fraction is at most 1, and bytes have a unit; " if fraction > 1 else ""
        raise ConfigurationError(f"{name}={shown(value)}: {more}expected {_ACCEPTED_SIZE}")
    return fraction


def parse_size(value: Size, total_bytes: int, name: str = "size", *, minimum_bytes: int = 1) -> int:
    """Return a size in bytes, given in bytes or as a fraction of device memory.

    Parameters
    ----------
    value : int, str or float
        As for `read_size`.
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
        As for `read_size`, and if a fraction is of less than `minimum_bytes`.

    Examples
    --------
    >>> parse_size(0.5, total_bytes=16 * 2**30), parse_size("50%", total_bytes=16 * 2**30)
    (8589934592, 8589934592)
    """
    found = read_size(value, name, minimum_bytes=minimum_bytes)
    if isinstance(found, float):
        return _checked(int(found * total_bytes), value, name, minimum_bytes, _ACCEPTED_SIZE)
    return found


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


def _fraction_of(value: object) -> float | None:
    """Return the number of a value that is a fraction as it is written; None for others."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        if (match := _PERCENT.fullmatch(value.strip())) is not None:
            return float(match[1]) / 100
        if _POINT.fullmatch(value.strip()) is not None:
            return float(value)
    return None


def _bytes_of(value: object, name: str, accepted: str, minimum_bytes: int) -> int:
    """Return the whole number of bytes that `value` names, within the bounds of every size."""
    if isinstance(value, str):
        match = _PATTERN.fullmatch(value.strip())
        if match is None:
            raise ConfigurationError(f"{name}={shown(value)}: {_meant(value)}expected {accepted}")
        # By way of a double, as RMM does, so that both round alike.
        amount = float(match[1]) * _MULTIPLIERS[(match[2] or "").lower()]
        if (match[2] or "").lower() in ("", "b") and math.isfinite(amount) and amount % 1:
            # RMM cuts it off, down to nothing. Another unit was meant.
            raise ConfigurationError(
                f"{name}={shown(value)}: no whole number of bytes: give a unit; expected {accepted}"
            )
        # An infinite amount is only too large; _checked says so.
        number = int(amount) if math.isfinite(amount) else MAXIMUM_BYTES + 1
    else:
        whole = whole_number(value)
        if whole is None:
            raise ConfigurationError(f"{name}={shown(value)}: expected {accepted}")
        number = whole
    return _checked(number, value, name, minimum_bytes, accepted)


def _meant(text: str) -> str:
    """Return which sizes with a whole unit may be meant, to be put before what is expected."""
    match = _HALF_A_UNIT.fullmatch(text.strip())
    if match is None:
        return ""
    amount, letter = match[1], match[2].upper()
    decimal = "kB" if letter == "K" else f"{letter}B"
    return f"write {amount}{letter}iB (powers of 1024) or {amount}{decimal} (of 1000); "


def _checked(size_bytes: int, value: object, name: str, minimum_bytes: int, accepted: str) -> int:
    """Return `size_bytes` if it lies within the bounds that every size has."""
    if minimum_bytes <= size_bytes <= MAXIMUM_BYTES:
        return size_bytes
    bound = "greater than 0" if minimum_bytes == 1 else f"{minimum_bytes} bytes or more"
    if size_bytes > MAXIMUM_BYTES:
        bound = "below 2**63 bytes (8 EiB)"
    raise ConfigurationError(f"{name}={shown(value)}: a size must be {bound}; expected {accepted}")


def whole_blocks(nbytes: float) -> int:
    """Return a size rounded down to blocks of 2 MiB; one block at least.

    Examples
    --------
    >>> whole_blocks(5 << 20) >> 20, whole_blocks(1) >> 20
    (4, 2)
    """
    return max(int(nbytes) // VA_BLOCK_BYTES, 1) * VA_BLOCK_BYTES
