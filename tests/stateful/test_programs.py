# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Any program of the Python API keeps its contents, and all accounts add up."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import Programs


class ProgramsWithThread(Programs):
    """Budgets are kept by a thread of theirs beside the program."""

    background = True


@pytest.mark.parametrize("programs", [Programs, ProgramsWithThread])
def test_any_program_keeps_contents_and_accounts(programs: type[Programs]) -> None:
    usual = settings()
    # What a thread did cannot be done again step by step, so that nothing shorter is looked for.
    phases = [Phase.generate] if programs.background else usual.phases
    run_state_machine_as_test(
        programs,
        settings=settings(
            max_examples=usual.max_examples // 3, stateful_step_count=40, phases=phases
        ),
    )


def test_program_whose_contents_changed_is_told() -> None:
    # What keeps the test above honest: bytes that changed are seen.
    program = Programs()
    try:
        program.install(None, "lru", (), False, {}, "auto")
        program.allocate(3 * 4096 + 1)
        program.contents_are_as_written()
        program.device.discard(*program.live[0].region)
        with pytest.raises(AssertionError):
            program.contents_are_as_written()
    finally:
        program.teardown()
