# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which line of a program a warning is about, where that line called us by many ways."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["users_level"]

_OURS = f"{Path(__file__).parents[1]}/"


def users_level() -> int:
    """Return the ``stacklevel`` with which our caller warns at the line that called this package.

    Examples
    --------
    >>> users_level()
    1
    """
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_OURS) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level
