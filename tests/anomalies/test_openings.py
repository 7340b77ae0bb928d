# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever fails while memory of another process is opened: done or undone, and it works again.

Apart from the other operations, since another process exports it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .harness import Operation, without_failure
from .levels import RESOURCES
from .levels import mistakes as mistakes_of_resource
from .openings import exporter, opening
from .test_driver_calls import meets, mistakes

__all__ = ["exporter", "opening"]  # fixtures

MEETS = ("open_ipc_memory", "find_memory", "open_ipc_event", "make_wait")


@pytest.mark.parametrize("kind", RESOURCES)
def test_opening_where_something_is_used_up_is_done_or_undone(
    opening: Operation, kind: str, tmp_path: Path
) -> None:
    assert mistakes_of_resource(opening, kind, tmp_path) == []


@pytest.mark.parametrize("call", MEETS)
def test_opening_whose_driver_call_fails_is_done_or_undone(
    opening: Operation, call: str, tmp_path: Path
) -> None:
    assert meets(opening, call, tmp_path)
    course = without_failure(opening, tmp_path)
    assert mistakes(opening, call, tmp_path, course) == []
