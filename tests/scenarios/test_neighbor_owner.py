# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How the steps of a neighbour's own program are timed: whole steps, by their ends."""

from __future__ import annotations

import math
from typing import Any

import pytest

from .residency_scripts import script

owner = script("neighbors/owner")


class Alive:
    def is_alive(self) -> bool:
        return True


class Ended:
    def is_alive(self) -> bool:
        return False


@pytest.fixture
def job() -> Any:
    made = owner.OwnerJob.__new__(owner.OwnerJob)  # without a process and what is shared with it
    made._process = Alive()
    return made


def told(job: Any, *moments: tuple[float, float]) -> None:
    """Let the job tell one moment after the other, and the last one for ever."""
    left = list(moments)
    job._last = lambda: left.pop(0) if len(left) > 1 else left[0]


def test_steps_are_timed_from_the_end_of_one_to_the_end_of_another(job: Any) -> None:
    told(job, (10.0, 5.0), (10.0, 5.0), (11.0, 5.5), (21.0, 8.5))
    assert job.step_seconds(lambda: None) == pytest.approx(0.3)


def test_time_of_a_step_that_does_not_end_is_not_known(job: Any) -> None:
    told(job, (10.0, 5.0), (11.0, 5.5), (11.0, 5.5))
    assert math.isnan(job.step_seconds(lambda: None))


def test_program_that_ended_is_told(job: Any) -> None:
    job._process = Ended()
    told(job, (10.0, 5.0))
    with pytest.raises(SystemExit, match="own program ended"):
        job.step_seconds(lambda: None)
