# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Values of JSON as a dataclass declares them: what is of another type is an error.

Python does not hold a dataclass to its types, and a report made of a size that is a text fails far
from where it was read. Does not cover what several values promise together: see
`rmm_uvm.recording.as_json`.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown

__all__ = ["fields_of", "value_of"]

# What 64 bits count, with a sign or without: more is no size, no address and no time.
_LEAST, _MOST = -(2**63), 2**64 - 1


def value_of(declared: Any, value: Any, name: str) -> Any:
    """Return a value of JSON as the type that is declared for it.

    Parameters
    ----------
    declared : type
        A dataclass, int, float, bool, str, `Any`, or of these a tuple, mapping or union with None.
    value : object
        From `json.loads`.
    name : str
        What it is called in messages.

    Raises
    ------
    DataError
        If it is of another type, or a number beyond 64 bits. A number that is not finite is
        accepted only as NaN, in a field ``end_seconds``: it says that something had not ended.

    Examples
    --------
    >>> value_of(tuple[int, ...], [1, 2], "sizes")
    (1, 2)
    """
    origin, inner = typing.get_origin(declared), typing.get_args(declared)
    if declared is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        (wanted,) = (one for one in inner if one is not types.NoneType)
        return None if value is None else value_of(wanted, value, name)
    if origin is tuple:
        return _tuple_of(inner, value, name)
    if origin is collections.abc.Mapping:
        return _mapping_of(inner[0], inner[1], value, name)
    if dataclasses.is_dataclass(declared):
        return typing.cast("Any", declared)(**fields_of(declared, value, name))
    if not _is_of(declared, value, name):
        raise DataError(f"{name} is {shown(value)}, not of type {declared.__name__}")
    return value


def fields_of(
    declared: Any, value: Any, name: str, *, left_out: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the fields of a dataclass that a mapping holds, each of its type.

    Parameters
    ----------
    declared : type
        The dataclass.
    value : object
        From `json.loads`.
    name : str
        What it is called in messages.
    left_out : tuple of str
        Fields that it must not hold.

    Raises
    ------
    DataError
        If a field is missing that has no default, is not known, or is of another type.
    """
    if not isinstance(value, dict):
        raise DataError(f"{name} is {shown(value)}, not of type {declared.__name__}")
    types_by_name = _types_of(declared)
    if unknown := value.keys() - types_by_name.keys() | value.keys() & set(left_out):
        raise DataError(f"{name} has a field {shown(min(unknown))}, which is not known")
    if missing := _needed(declared) - value.keys() - set(left_out):
        raise DataError(f"{name} has no field {min(missing)}")
    return {key: value_of(types_by_name[key], one, f"{name}.{key}") for key, one in value.items()}


def _tuple_of(inner: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise DataError(f"{name} is {shown(value)}, not a list")
    if inner[-1] is not Ellipsis and len(inner) != len(value):
        raise DataError(f"{name} has {len(value)} values, not {len(inner)}")
    kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
    return tuple(
        value_of(kind, one, f"{name}[{place}]")
        for place, (kind, one) in enumerate(zip(kinds, value, strict=True))
    )


def _mapping_of(key_kind: Any, kind: Any, value: Any, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{name} is {shown(value)}, not a mapping")
    found = {}
    for key, one in value.items():
        place = f"{name}[{shown(key)}]"
        known_as = _number(key, place) if key_kind is int else key
        found[known_as] = value_of(kind, one, place)
    return found


def _number(key: str, name: str) -> int:
    """Return the number that a key says: JSON has none but texts."""
    # Short and in ASCII first: digits of other scripts, or a thousand of them, are no ordinal.
    if key.isascii() and key.isdecimal() and len(key) < 10 and str(int(key)) == key:
        return int(key)
    raise DataError(f"{name} is of no device")


def _is_of(declared: Any, value: Any, name: str) -> bool:
    if declared is float:
        if type(value) is float and not math.isfinite(value):
            return math.isnan(value) and name.endswith(".end_seconds")
        return type(value) in (int, float) and _LEAST <= value <= _MOST
    return type(value) is declared and (declared is not int or _LEAST <= value <= _MOST)


@functools.cache
def _types_of(declared: Any) -> dict[str, Any]:
    # NumPy's types are imported for the checker of types alone where fields are declared.
    hints = typing.get_type_hints(declared, localns={"np": np})
    return {field.name: hints[field.name] for field in dataclasses.fields(declared)}


@functools.cache
def _needed(declared: Any) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(declared)
        if field.default is missing and field.default_factory is missing
    )
