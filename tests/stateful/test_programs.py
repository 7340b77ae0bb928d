# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Any program of the Python API keeps its contents, and all accounts add up.

Most are the same on every run. Some are others each time, in CI for each commit: `PROGRAMS_SEED`,
which is printed, makes them again, and `PROGRAMS_MOST` says how many there are of each kind.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from ..support.known_contents import Buffer
from . import unseen
from .company import ForkingPrograms, ProgramsWithThreads, in_child
from .machine import Programs


@contextlib.contextmanager
def begun(programs: type[Programs]) -> Iterator[Programs]:
    """Make a program with a pool and memory of it."""
    program = programs()
    try:
        program.install(None, "lru", (), False, {}, "auto")
        program.allocate(3 * 4096 + 1)
        program.contents_are_as_written()
        yield program
    finally:
        program.teardown()


@pytest.fixture(scope="module", autouse=True)
def _quick_collections() -> Iterator[None]:
    # Each program collects, and what tests of the same process left alive takes a second each time.
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()  # later tests look for what leaks


def run(programs: type[Programs], most: int) -> None:
    """Try so many programs."""
    usual = settings()
    # What a thread did cannot be done again step by step, so that nothing shorter is looked for.
    phases = [Phase.generate] if programs.unordered else usual.phases
    run_state_machine_as_test(
        programs,
        settings=settings(max_examples=most, stateful_step_count=40, phases=phases),
    )


@pytest.mark.parametrize("programs", [ForkingPrograms, ProgramsWithThreads])
def test_any_program_keeps_contents_and_accounts(programs: type[Programs]) -> None:
    run(programs, settings().max_examples // 3)


@pytest.mark.parametrize("programs", [ForkingPrograms, ProgramsWithThreads])
def test_any_other_program_keeps_contents_and_accounts(
    programs: type[Programs], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = os.environ.get("PROGRAMS_SEED", "")
    chosen = int(asked) if asked else random.SystemRandom().randrange(1 << 32)
    with capsys.disabled():  # also where they are right: what fails tomorrow may be compared
        print(f"\n{programs.__name__}: PROGRAMS_SEED={chosen}")
    run(
        seed(chosen)(type(programs.__name__, (programs,), {})),
        int(os.environ.get("PROGRAMS_MOST", 6)),
    )


def test_same_seed_makes_the_same_programs() -> None:
    def written(chosen: int) -> list[int]:
        sizes: list[int] = []

        class Recorded(ForkingPrograms):
            def _write(self, buffer: Buffer) -> None:
                super()._write(buffer)
                sizes.append(buffer.nbytes)

        run(seed(chosen)(Recorded), 2)
        return sizes

    assert written(1) == written(1) != written(2)


def test_program_whose_contents_changed_is_told() -> None:
    # What keeps the test above honest: bytes that changed are seen.
    with begun(Programs) as program:
        program.device.discard(*program.live[0].region)
        with pytest.raises(AssertionError):
            program.contents_are_as_written()
        program.live[0].write(1)


def test_child_whose_contents_changed_is_told() -> None:
    with begun(ForkingPrograms) as program:
        assert isinstance(program, ForkingPrograms)
        program.fork(sizes=[17], number=0, stream=7, again=True)
        program.device.discard(*program.live[0].region)
        with pytest.raises(AssertionError, match="contents_are_as_written"):
            program.fork(sizes=[17], number=0, stream=7, again=False)
        program.live[0].write(1)


def test_child_that_ends_by_itself_is_told() -> None:
    assert in_child(lambda: None) == ""
    assert in_child(lambda: os._exit(3)) == "status 3 "


def test_child_in_which_something_went_wrong_unseen_is_told() -> None:
    assert "nobody saw:\nan exception" in in_child(lambda: unseen.note("an exception"))
    unseen.nothing_was_noted()


def test_thread_whose_contents_changed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = [("allocate", 0, 5000, 7), ("write", 0, 1, 9)]
    with begun(ProgramsWithThreads) as program:
        assert isinstance(program, ProgramsWithThreads)
        program.threads([plan, plan])
        assert len(program.live) == 3
        monkeypatch.setattr("tests.support.known_contents.Buffer.changed", True, raising=True)
        with pytest.raises(AssertionError):
            program.threads([plan, plan])
