# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The text of a machine file: TOML to a `Machine`, and back.

Covers the format and its errors. Does not cover where files are; see `rmm_uvm.simulator.machine`.
The format is described in ``docs/machines.md``.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.simulator.constants import CONSTANTS
from rmm_uvm.simulator.profile import Machine
from rmm_uvm.support.messages import shown

__all__ = ["format_machine", "parse_machine"]

_TEXTS = ("name", "gpu", "link", "description", "date", "driver")
_OPTIONAL = ("description", "date", "driver")
_MACHINE_KEYS = (*_TEXTS, "measured")
_CONSTANT_KEYS = ("value", "unit", "source")
_MOST_NAMED = 5  # in one message


def parse_machine(text: str, where: str) -> Machine:
    """Return the machine that a file's text describes.

    Parameters
    ----------
    text : str
        TOML.
    where : str
        The file, for error messages.

    Raises
    ------
    DataError
        If the text is no TOML, a table, key or constant is missing or unknown, a unit is another
        than the constant's, or a value is out of its bounds. The message names file and key.
    """
    try:
        # Nested brackets in their thousands end the parser by RecursionError, and a number of
        # thousands of digits by a plain ValueError.
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no TOML: {error}") from error
    _refuse_unknown(where, "table", document, ("machine", "constants"))
    facts = _table(where, document, "machine")
    _refuse_unknown(where, "key of [machine]", facts, _MACHINE_KEYS)
    texts: dict[str, Any] = {key: _text(where, facts, key) for key in _TEXTS}
    if not isinstance(facts.get("measured"), bool):
        raise DataError(f"{where}: machine.measured is {_shown(facts, 'measured')}: true or false")
    values, sources = _constants(where, _table(where, document, "constants"))
    try:
        return Machine(**texts, measured=facts["measured"], sources=sources, **values)
    except ConfigurationError as error:  # the name: all else was checked
        raise DataError(f"{where}: {error}") from error


def format_machine(machine: Machine) -> str:
    """Return the text of a machine's file; `parse_machine` returns an equal machine."""
    lines = ["[machine]"]
    lines += [f"{key} = {_quoted(getattr(machine, key))}" for key in ("name", "gpu", "link")]
    lines.append(f"measured = {str(machine.measured).lower()}")
    lines += [f"{key} = {_quoted(getattr(machine, key))}" for key in _OPTIONAL]
    for name, value in machine.constants().items():
        source = machine.sources.get(name) or "not stated"
        lines += [
            "",
            f"[constants.{name}]",
            f"value = {value!r}",
            f'unit = "{CONSTANTS[name].unit}"',
            f"source = {_quoted(source)}",
        ]
    return "\n".join(lines) + "\n"


def _constants(where: str, tables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return values and sources by constant."""
    _refuse_unknown(where, "constant", tables, CONSTANTS)
    if missing := [name for name in CONSTANTS if name not in tables]:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        named = ", ".join(missing[:_MOST_NAMED])
        raise DataError(f"{where}: constants are missing: {named}{more}")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, constant in CONSTANTS.items():
        key = f"constants.{name}"
        table = _table(where, tables, name, key)
        _refuse_unknown(where, f"key of [{key}]", table, _CONSTANT_KEYS)
        if table.get("unit") != constant.unit:
            raise DataError(
                f"{where}: {key}.unit is {_shown(table, 'unit')}: expected {constant.unit!r}"
            )
        if "value" not in table:
            raise DataError(f"{where}: {key}.value is missing")
        if problem := constant.problem(table["value"]):
            raise DataError(f"{where}: {key}.value is {problem}")
        values[name] = constant.converted(table["value"])
        source = table.get("source")
        if not isinstance(source, str) or not source.strip():
            raise DataError(
                f"{where}: {key}.source is {_shown(table, 'source')}: say where the value is from"
            )
        sources[name] = source
    return values, sources


def _table(where: str, parent: Mapping[str, Any], name: str, key: str = "") -> dict[str, Any]:
    table = parent.get(name)
    if not isinstance(table, dict):
        raise DataError(f"{where}: there is no table [{key or name}]; see docs/machines.md")
    return table


def _text(where: str, facts: Mapping[str, Any], key: str) -> str:
    value = facts.get(key, "" if key in _OPTIONAL else None)
    if not isinstance(value, str) or not (value.strip() or key in _OPTIONAL):
        raise DataError(f"{where}: machine.{key} is {_shown(facts, key)}: expected text")
    return value


def _refuse_unknown(where: str, kind: str, found: Mapping[str, Any], known: Iterable[str]) -> None:
    names = list(known)
    for name in found:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see docs/machines.md"
            raise DataError(f"{where}: unknown {kind} {shown(name)}; {hint}")


def _shown(table: Mapping[str, Any], key: str) -> str:
    """Return a value for a message, cut short; the file may hold anything."""
    if key not in table:
        return "missing"
    return shown(table[key])


def _quoted(text: str) -> str:
    """Return a TOML basic string: JSON's escapes are a part of TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
