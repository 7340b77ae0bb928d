# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that name an argument of a function, in the spelling of the command line."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable

__all__ = ["in_options"]

# An argument with its value as Python shows it, or what is said of it, at the begin of a message.
_VALUE = re.compile(r"""(\w+)=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s:]+)(?=:)""")
_SAID = re.compile(r"(\w+)(?= (?:has|is) )")
_CHOOSE = re.compile(r"(?<=choose one with )(\w+)=")


def in_options(message: str, names: Iterable[str]) -> str:
    """Return a message as the user of a command would have it.

    Parameters
    ----------
    message : str
        As raised by a function.
    names : iterable of str
        Its arguments that are options too.

    Examples
    --------
    >>> in_options("device_memory='24': a card has 16.00 MiB at least", ["device_memory"])
    '--device-memory 24: a card has 16.00 MiB at least'
    >>> in_options("workers has 4 hands", ["machine"])
    'workers has 4 hands'
    """
    known = set(names)
    for pattern in (_VALUE, _SAID):
        found = pattern.match(message)
        if found is not None and found[1] in known:
            value = f" {_typed(found[2])}" if found.lastindex == 2 else ""
            return f"{_option(found[1])}{value}{message[found.end() :]}"
    return _CHOOSE.sub(lambda found: _option(found[1]) if found[1] in known else found[0], message)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _typed(shown: str) -> str:
    """Return a value as it is typed in a shell."""
    if shown[0] not in "'\"":
        return shown
    value = str(ast.literal_eval(shown))
    return shlex.quote(value) if value.isprintable() else shown
