# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The answer that each question returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .session import Session


@dataclass(frozen=True)
class Answer:
    """Figures and what follows from them.

    Parameters
    ----------
    measurements : dict or list
        Plain values, ready for JSON; units are in the keys.
    conclusion : dict
        Computed from the measurements alone.
    """

    measurements: Any
    conclusion: dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One open question about the driver and the way it is settled."""

    key: str
    text: str
    method: str
    ask: Callable[[Session], Answer]
