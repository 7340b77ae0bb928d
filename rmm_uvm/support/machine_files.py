# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Machine profiles: their text, and finding, loading and saving them.

Covers the files that ship with the package, in ``rmm_uvm/simulator/machines``, a user's own in
``~/.config/rmm-uvm/machines`` (or below ``XDG_CONFIG_HOME``), and any file by its path. The format
is described in ``docs/use/machines.md``. Does not cover measuring one; see
`rmm_uvm.simulator.measuring`.

Environment
-----------
XDG_CONFIG_HOME
    Folder of the user's settings, instead of ``~/.config``; an absolute path.

Examples
--------
>>> from rmm_uvm.support.machine_files import load_machine
>>> machine = load_machine("gtx1080ti-pcie3")
>>> print(machine)
gtx1080ti-pcie3 (published only)
>>> load_machine("h200-pcie5").block_to_host_ns
87000.0
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.support.machine_profile import CONSTANTS, NAME_PATTERN, Machine, ThirdTier
from rmm_uvm.support.messages import shown
from rmm_uvm.support.output import written_whole
from rmm_uvm.support.package_files import package_names, package_text

__all__ = [
    "Machine",
    "as_machine",
    "format_machine",
    "load_machine",
    "machine_names",
    "parse_machine",
    "save_machine",
    "shipped_names",
    "user_machines",
]

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
        If the text is not TOML, a table, key or constant is missing or unknown, a unit is another
        than the constant's, or a value is out of its bounds. The message names file and key.
    """
    try:
        # Nested brackets in their thousands end the parser by RecursionError, and a number of
        # thousands of digits by a plain ValueError.
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not valid TOML: {error}") from error
    _refuse_unknown(where, "table", document, ("machine", "constants", "third_tier"))
    facts = _table(where, document, "machine")
    _refuse_unknown(where, "key of [machine]", facts, _MACHINE_KEYS)
    texts: dict[str, Any] = {key: _text(where, facts, key) for key in _TEXTS}
    if not isinstance(facts.get("measured"), bool):
        raise DataError(f"{where}: machine.measured is {_shown(facts, 'measured')}: true or false")
    values, sources = _constants(where, _table(where, document, "constants"))
    tier = _third_tier(where, document) if "third_tier" in document else None
    try:
        return Machine(
            **texts, measured=facts["measured"], sources=sources, third_tier=tier, **values
        )
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
    if tier := machine.third_tier:
        lines += ["", "[third_tier]"]
        lines += [f"{name} = {value!r}" for name, value in tier.constants().items()]
        lines.append(f"source = {_quoted(tier.source or 'not stated')}")
    return "\n".join(lines) + "\n"


def _third_tier(where: str, document: Mapping[str, Any]) -> ThirdTier:
    table = _table(where, document, "third_tier")
    names = [one.name for one in fields(ThirdTier)]
    _refuse_unknown(where, "key of [third_tier]", table, names)
    if missing := [name for name in names if name not in table]:
        raise DataError(f"{where}: third_tier.{missing[0]} is missing")
    if not isinstance(table["source"], str) or not table["source"].strip():
        raise DataError(
            f"{where}: third_tier.source is {_shown(table, 'source')}: say where the values are "
            "from"
        )
    try:
        return ThirdTier(**table)
    except ConfigurationError as error:
        raise DataError(f"{where}: {error}") from error


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
        raise DataError(f"{where}: there is no table [{key or name}]; see docs/use/machines.md")
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
            hint = f"did you mean {close[0]!r}?" if close else "see docs/use/machines.md"
            raise DataError(f"{where}: unknown {kind} {shown(name)}; {hint}")


def _shown(table: Mapping[str, Any], key: str) -> str:
    """Return a value for a message, cut short; the file may hold anything."""
    if key not in table:
        return "missing"
    return shown(table[key])


def _quoted(text: str) -> str:
    """Return a TOML basic string: JSON's escapes are a part of TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_SUFFIX = ".toml"
_SHIPPED = ("rmm_uvm", "simulator", "machines")
# A machine file has some 8 KiB. What is much larger is something else, perhaps without an end.
_MAXIMUM_FILE_BYTES = 1 << 20


def load_machine(name_or_path: str | os.PathLike[str]) -> Machine:
    """Return a machine profile.

    Parameters
    ----------
    name_or_path : str or path
        A path object, or text with a ``/`` or the ending ``.toml``, is a file. Any other text is
        a name: of a machine that ships with the package, otherwise of a user's own.

    Raises
    ------
    ConfigurationError
        If there is no machine of this name; the message lists those that there are.
    DataError
        If the file cannot be read, or does not describe a machine.
    AvailabilityError
        If the files of this package cannot be read.
    """
    if not isinstance(name_or_path, str) or _is_path(name_or_path):
        return _load_file(Path(name_or_path))
    if name_or_path in shipped_names():
        text = package_text(*_SHIPPED, f"{name_or_path}{_SUFFIX}")
        return parse_machine(text, f"machine {name_or_path}")
    folder = user_machines()
    if folder and NAME_PATTERN.fullmatch(name_or_path):
        own = folder / f"{name_or_path}{_SUFFIX}"
        if own.is_file():
            return _load_file(own)
    known = machine_names()
    begun = [name for name in known if name.startswith(name_or_path.lower())]
    close = difflib.get_close_matches(name_or_path.lower(), known, n=1)
    meant = begun if name_or_path and begun else close
    hint = f" (did you mean {' or '.join(map(repr, meant))}?)" if meant else ""
    raise ConfigurationError(
        f"there is no machine {shown(name_or_path)}{hint}: use {', '.join(known)}, "
        "or the path of a machine file"
    )


def as_machine(machine: object) -> Machine:
    """Return the machine that an argument `machine` means: itself, or what `load_machine` finds.

    Raises
    ------
    ConfigurationError
        If it is no name, path or machine; else as `load_machine`.
    """
    if isinstance(machine, Machine):
        return machine
    if isinstance(machine, str | os.PathLike):
        return load_machine(machine)
    raise ConfigurationError(
        f"machine={shown(machine)}: a name such as 'h200-pcie5', a path, or a Machine"
    )


def machine_names() -> tuple[str, ...]:
    """Return the names that `load_machine` knows: those of the package, then the user's."""
    shipped = shipped_names()
    folder = user_machines()
    try:
        own = sorted(path.stem for path in folder.glob(f"*{_SUFFIX}")) if folder else []
    except OSError:  # a folder that may not be read holds no machines for us
        own = []
    usable = (name for name in own if NAME_PATTERN.fullmatch(name) and name not in shipped)
    return (*shipped, *usable)


def save_machine(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write a machine file, in place of one that is there.

    Parameters
    ----------
    machine : Machine
        What to write.
    path : path
        The file. Its folder must exist.

    Raises
    ------
    DataError
        If the file cannot be written; a file that was there is then unchanged.
    """
    with written_whole(Path(path), "the machine file") as target:
        target.write_text(format_machine(machine), encoding="utf-8")


def user_machines() -> Path | None:
    """Return the folder of the user's own machine files, which need not exist.

    None for a user without a home, as in a container that runs under a number only.
    """
    settings = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not settings.is_absolute():  # as the XDG specification has it: to be ignored
        try:
            settings = Path("~/.config").expanduser()
        except RuntimeError:
            return None
    return settings / "rmm-uvm" / "machines"


def _is_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.endswith(_SUFFIX)


def shipped_names() -> tuple[str, ...]:
    """Return the names of the machines that ship with the package.

    Raises
    ------
    AvailabilityError
        If its folder cannot be read.
    """
    names = package_names(*_SHIPPED)
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def _load_file(path: Path) -> Machine:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAXIMUM_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"machine file {path} cannot be read: {reason}") from error
    if len(raw) > _MAXIMUM_FILE_BYTES:
        raise DataError(
            f"{path} is not a machine file: it has more than {_MAXIMUM_FILE_BYTES} bytes"
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a machine file: it is not UTF-8 text ({error})") from error
    return parse_machine(text, str(path))
