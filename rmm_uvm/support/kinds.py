# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of values that a setting may take: how one is read, in which words another is refused.

A kind reads what a Python call was given, and text of an environment variable, a command line or
Dask. It returns the plain form: numbers, text, tuples and mappings that JSON can hold. Reading a
plain value again returns it unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.driver_names import DRIVERS, simulated_bytes
from rmm_uvm.support.messages import meant, shown
from rmm_uvm.support.units import (
    VA_BLOCK_BYTES,
    format_bytes,
    parse_bytes,
    read_size,
    whole_number,
)

__all__ = [
    "AnyOf",
    "Count",
    "Devices",
    "DriverName",
    "Foreign",
    "Kind",
    "Limit",
    "OneOf",
    "Size",
]

_MOST_ORDINAL = 2**31 - 1  # CUDA's ordinals are of C's type int
_MOST_DIGITS = len(str(_MOST_ORDINAL))


class Kind:
    """Values that a setting may take."""

    def read(self, value: Any, name: str) -> Any:
        """Return the plain form of a value.

        Parameters
        ----------
        value : object
            As it was given.
        name : str
            Of the setting, as it is called where the value was given.

        Raises
        ------
        ConfigurationError
            If it is none: what was given, and what is accepted.
        """
        raise NotImplementedError

    def read_text(self, text: str, name: str) -> Any:
        """Return the plain form of text from outside Python; as `read`."""
        return self.read(text, name)


@dataclasses.dataclass(frozen=True)
class Size(Kind):
    """Bytes, or a fraction of device memory; see `rmm_uvm.support.units`.

    Parameters
    ----------
    automatic : bool
        "auto" is accepted too.
    absent : bool
        "none" is accepted too.
    is_fraction : bool
        A fraction is accepted: there is one device that it is of.
    least_bytes : int
        Fewer bytes are refused.
    least_reason : str
        Why; empty where it needs no words.
    """

    automatic: bool = False
    absent: bool = False
    is_fraction: bool = True
    least_bytes: int = 1
    least_reason: str = ""

    def read(self, value: Any, name: str) -> int | float | str:
        """Return bytes, a fraction, "auto" or "none"."""
        words = ["auto"] * self.automatic + ["none"] * self.absent
        if isinstance(value, str) and value.lower() in words:
            return value.lower()
        if not self.is_fraction:
            return parse_bytes(value, name, minimum_bytes=self.least_bytes)
        try:
            found = read_size(value, name)
        except ConfigurationError as error:
            if not words or not isinstance(value, str):
                raise
            raise ConfigurationError(f"{error}, or {' or '.join(words)}") from None
        if isinstance(found, int) and found < self.least_bytes:
            raise ConfigurationError(
                f"{name}={shown(value)}: at least {format_bytes(self.least_bytes)}"
                f"{self.least_reason}"
            )
        return found


@dataclasses.dataclass(frozen=True)
class OneOf(Kind):
    """One of some values.

    Parameters
    ----------
    choices : mapping of object to str
        The values, each with what it does, in a few words.
    """

    choices: Mapping[Any, str]

    def read(self, value: Any, name: str) -> Any:
        """Return the value."""
        for each in self.choices:
            if type(value) is type(each) and value == each:  # 1 is not True
                return each
        near = meant(value, self.choices)
        raise ConfigurationError(f"{name}={shown(value)}{near}: use one of {_listed(self.choices)}")

    def read_text(self, text: str, name: str) -> Any:
        """Return the value; true and false are words, too."""
        for each in self.choices:
            if isinstance(each, bool) and text.lower() == _yaml(each):
                return each
        return self.read(text, name)


@dataclasses.dataclass(frozen=True)
class AnyOf(Kind):
    """Some of several names, or none of them.

    Parameters
    ----------
    names : tuple of str
        That can be used.
    refused : mapping of str to str
        Names that people may expect, and why they cannot be used.
    """

    names: tuple[str, ...]
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def read(self, value: Any, name: str) -> tuple[str, ...]:
        """Return the names; an iterator can be read only once."""
        known = isinstance(value, Iterable) and not isinstance(value, str)
        found = tuple(value) if known else ()
        self._refuse(found, name)
        if not known or any(each not in self.names for each in found):
            raise ConfigurationError(
                f"{name}={shown(found or value)}: a list of {_listed(self.names)}, () for none"
            )
        return found

    def read_text(self, text: str, name: str) -> tuple[str, ...]:
        """Return the names, with commas between them; "none" or nothing for none."""
        parts = tuple(part.strip() for part in text.split(",") if part.strip())
        parts = () if parts == ("none",) else parts
        self._refuse(parts, name)
        if any(each not in self.names for each in parts):
            raise ConfigurationError(
                f"{name}={shown(text)}: use {', '.join(self.names)}, several with commas, or none"
            )
        return parts

    def _refuse(self, asked: tuple[object, ...], name: str) -> None:
        for refused, reason in self.refused.items():
            if refused in asked:
                raise ConfigurationError(f"{name}={shown(refused)}: {reason}")


@dataclasses.dataclass(frozen=True)
class Count(Kind):
    """A whole number, from 1.

    Parameters
    ----------
    of : str
        What is counted.
    """

    of: str

    def read(self, value: Any, name: str) -> int:
        """Return the number."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise ConfigurationError(f"{name}={shown(value)}: a number of {self.of}, from 1")

    def read_text(self, text: str, name: str) -> int:
        """Return the number."""
        return self.read(int(text) if _is_number(text) else text, name)


@dataclasses.dataclass(frozen=True)
class Devices(Kind):
    """Devices by CUDA ordinal, each once, or "auto"."""

    def read(self, value: Any, name: str) -> str | tuple[int, ...]:
        """Return "auto" or the ordinals."""
        if isinstance(value, str) and value == "auto":
            return value
        if (one := _ordinal(value)) is not None:  # YAML and Dask make a number of a single one
            return (one,)
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
            asked = tuple(value)
            ordinals = tuple(one for one in map(_ordinal, asked) if one is not None)
            if len(set(ordinals)) == len(asked):
                return ordinals
        raise ConfigurationError(
            f"{name}={shown(value)}: use 'auto', CUDA ordinals such as [1, 2], each once, or None"
        )

    def read_text(self, text: str, name: str) -> str | tuple[int, ...] | None:
        """Return "auto", the ordinals, or None for "none"."""
        if text.lower() in ("auto", "none"):
            return "auto" if text.lower() == "auto" else None
        parts = [part.strip() for part in text.split(",")]
        # Python makes no number of thousands of digits.
        if all(_is_number(part) for part in parts):
            return self.read([int(part) for part in parts], name)
        raise ConfigurationError(
            f"{name}={shown(text)}: use auto, none, or ordinals with commas such as 1,2"
        )


@dataclasses.dataclass(frozen=True)
class Limit(Kind):
    """Bytes on each of some devices, or by ordinal; at least a block."""

    def read(self, value: Any, name: str) -> int | dict[int, int]:
        """Return the bytes."""
        if isinstance(value, Mapping):
            for key in value:
                if _ordinal(key) is None:
                    raise ConfigurationError(
                        f"{name}={shown(value)}: {shown(key)} is not a CUDA ordinal"
                    )
            return {int(key): _block(one, f"{name}[{key}]") for key, one in value.items()}
        return _block(value, name)


@dataclasses.dataclass(frozen=True)
class DriverName(Kind):
    """A driver by its name."""

    def read(self, value: Any, name: str) -> str:
        """Return the name, if a driver of it could be opened."""
        if not isinstance(value, str):
            raise ConfigurationError(f"{name}={shown(value)}: {DRIVERS}")
        simulated = simulated_bytes(value or "cuda", f"{name}={shown(value)}") is not None
        return value if simulated else "cuda"


@dataclasses.dataclass(frozen=True)
class Foreign(Kind):
    """Values that whoever uses them checks: RMM, a monitor.

    Parameters
    ----------
    words : str
        What is accepted.
    check : callable, optional
        Is given value and name; raises `ConfigurationError` or returns the plain value.
    types : tuple of str
        Of the values, as JSON schema calls them.
    """

    words: str
    check: Callable[[Any, str], Any] = lambda value, name: value
    types: tuple[str, ...] = ()

    def read(self, value: Any, name: str) -> Any:
        """Return the value, checked."""
        return self.check(value, name)


def _block(value: Any, name: str) -> int:
    return parse_bytes(value, name, minimum_bytes=VA_BLOCK_BYTES)


def _ordinal(value: object) -> int | None:
    number = whole_number(value)
    return number if number is not None and 0 <= number <= _MOST_ORDINAL else None


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(repr, values))
