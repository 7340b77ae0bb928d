# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints of a program, where it gives any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def announcing(announced: bool) -> Callable[[Any], Any]:  # noqa: FBT001 - one switch
    if not announced:
        return lambda _: None
    import rmm_uvm

    return rmm_uvm.touch
