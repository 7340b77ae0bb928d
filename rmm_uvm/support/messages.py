# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of messages: values from files and settings, short enough to be read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["meant", "shown", "shown_name"]

_LONGEST_SHOWN = 80


def shown(value: object) -> str:
    """Return a value as a message shows it: as Python spells it, cut short where it is long.

    Values come from files and settings; whatever is there, a message stays one that can be read.

    Examples
    --------
    >>> shown("2 GB"), shown("x" * 1000)[-5:]
    ("'2 GB'", 'xx...')
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def shown_name(name: str) -> str:
    r"""Return the name of a variable as a message shows it: itself, or as `shown` what is no name.

    Others choose the names in an environment, too, and a terminal obeys what some of them say.

    Examples
    --------
    >>> shown_name("COUNTERS"), shown_name("COUNTERS\x1b[2J")
    ('COUNTERS', "'COUNTERS\\x1b[2J'")
    """
    return name if name.isidentifier() and len(name) <= _LONGEST_SHOWN else shown(name)


def meant(word: object, known: Iterable[object]) -> str:
    """Return what a message adds after a misspelt word: which of those known is close to it.

    Examples
    --------
    >>> meant("lruu", ["fifo", "lru"]), meant("colour", ["fifo", "lru"]), meant(7, ["lru"])
    (" (did you mean 'lru'?)", '', '')
    """
    if not isinstance(word, str):
        return ""
    names = [each for each in known if isinstance(each, str)]
    close = difflib.get_close_matches(word.lower(), names, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
