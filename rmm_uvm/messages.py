# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What messages are made of: values from files and settings, short enough to be read."""

from __future__ import annotations

__all__ = ["shown"]

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
