# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Machine profiles: finding, loading and saving them.

Covers the files that ship with the package, in ``rmm_uvm/simulator/machines``, a user's own in
``~/.config/rmm-uvm/machines`` (or below ``XDG_CONFIG_HOME``), and any file by its path. Does not
cover their format (`rmm_uvm.simulator.machine_text`) nor measuring one
(`rmm_uvm.simulator.measuring`).

Environment
-----------
XDG_CONFIG_HOME
    Folder of the user's settings, instead of ``~/.config``; an absolute path.

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

import difflib
import os
from pathlib import Path

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.simulator.machine_text import format_machine, parse_machine
from rmm_uvm.simulator.profile import NAME_PATTERN, Machine
from rmm_uvm.support.package_files import package_names, package_text

__all__ = [
    "Machine",
    "load_machine",
    "machine_names",
    "save_machine",
    "shipped_names",
    "user_machines",
]

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
    close = difflib.get_close_matches(name_or_path.lower(), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ConfigurationError(
        f"there is no machine {name_or_path!r}{hint}: use {', '.join(known)}, "
        "or the path of a machine file"
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
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        try:
            unfinished.write_text(format_machine(machine), encoding="utf-8")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


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
        raise DataError(f"{path} is no machine file: it has more than {_MAXIMUM_FILE_BYTES} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no machine file: it is not UTF-8 text ({error})") from error
    return parse_machine(text, str(path))
