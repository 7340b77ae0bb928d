# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as users see it: figures that print, and that are saved as JSON or a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rmm_uvm.planner.outcome import PlanFigures
from rmm_uvm.planner.views.as_dict import as_dict
from rmm_uvm.planner.views.documents import page, summary
from rmm_uvm.report.document import Document
from rmm_uvm.report.presented import Presented

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan(PlanFigures, Presented):
    """The plan: a recorded workload on other cards. All of it is simulated.

    Its attributes are those of `PlanFigures`.

    Notes
    -----
    ``str(plan)`` is the text that the command prints. Immutable, and so thread-safe.
    """

    _called: ClassVar[str] = "the plan"

    def __repr__(self) -> str:
        sizes = ", ".join(str(card.device_bytes) for card in self.cards)
        return f"Plan({str(self.workload.source)!r}, {str(self.machine)!r}, cards: {sizes})"

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, ready for JSON; sizes in bytes."""
        return as_dict(self)

    def _summary(self) -> Document:
        return summary(self)

    def _page(self) -> Document:
        return page(self)
