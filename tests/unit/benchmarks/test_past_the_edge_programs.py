# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of `benchmarks/past_the_edge/run.py` that are not of a library's loop: equal rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import rmm_uvm
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.etl import STAGES, run_etl

from .scripts import script

programs = script("benchmarks", "past_the_edge/programs").PROGRAMS
loops = script("benchmarks", "past_the_edge/programs/loops")
mortgage = script("benchmarks", "past_the_edge/programs/mortgage")
UNIT = 1 << 20


class Arrays:
    """As `GpuArrays`, without a GPU: only sizes, and what is alive."""

    made: ClassVar[list[Arrays]] = []
    wrong = 0

    def __init__(self, _mr: Any, passes: int, touch: Any) -> None:
        assert passes > 0
        self._touch, self._sizes, self._next = touch, dict[int, int](), 1
        self.peak_bytes = 0
        self.made.append(self)

    def make(self, nbytes: int) -> int:
        self._sizes[self._next] = nbytes
        self._next += 1
        self.peak_bytes = max(self.peak_bytes, sum(self._sizes.values()))
        return self._next - 1

    def read(self, handle: int) -> None:
        self._touch(handle, self._sizes[handle], handle)

    write = read

    def free(self, handle: int) -> None:
        del self._sizes[handle]

    def held(self) -> list[int]:
        return list(self._sizes)

    def finish(self) -> int:
        return self.wrong


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> type[Arrays]:
    monkeypatch.setattr(loops, "GpuArrays", Arrays)
    monkeypatch.setattr(Arrays, "made", [])
    monkeypatch.setattr(Arrays, "wrong", 0)
    return Arrays


def whole_round(program: Any) -> list[int]:
    return [program.operation(number) for number in range(program.operations)]


@pytest.mark.parametrize(("name", "peak_units"), [("etl", 176), ("training", 164)])
def test_loop_lives_in_the_bytes_that_it_is_given(
    name: str, peak_units: int, arrays: type[Arrays]
) -> None:
    kind = programs[name]
    program = kind(peak_units * UNIT, kind.PIECES)
    assert program.operations == kind.PIECES * kind.STEPS
    program.make()
    [memory] = arrays.made
    for _ in range(3):
        whole_round(program)

    assert peak_units * UNIT <= memory.peak_bytes <= 1.01 * peak_units * UNIT
    program.drop()
    assert memory.held() == []


@pytest.mark.parametrize("name", ["etl", "training"])
@pytest.mark.parametrize("announced", [True, False])
def test_loop_announces_each_use_where_it_is_asked_to(
    name: str, announced: bool, arrays: type[Arrays], monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[Any] = []
    monkeypatch.setattr(rmm_uvm, "touch", touched.append)
    program = programs[name](176 * UNIT, 2, announced=announced)
    program.make()
    whole_round(program)

    assert bool(touched) is announced
    assert all(nbytes > 0 for _, nbytes in touched)
    program.drop()


@pytest.mark.parametrize("name", ["etl", "training"])
def test_loop_that_lost_a_word_ends(name: str, arrays: type[Arrays]) -> None:
    program = programs[name](176 * UNIT, 1)
    program.make()
    arrays.wrong = 3
    with pytest.raises(SystemExit, match="3 words were lost"):
        whole_round(program)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(mortgage.Mortgage, "ENGINE", "pandas")
    monkeypatch.setattr(mortgage.harness, "keep_host_memory", lambda: None)
    return programs["mortgage"](20_000 * mortgage.PEAK_BYTES_OF_ROW, 1)


def test_mortgage_computes_what_the_etl_does_in_every_round(little: Any) -> None:
    little.make()
    first, second = whole_round(little), whole_round(little)
    whole = run_etl(make_engine("pandas"), little._part)

    assert len(first) == len(STAGES) == little.STEPS
    assert first == second
    assert first[-1] == mortgage.checksum_of(whole)
    assert first[-1] != mortgage.checksum_of(whole.slice(1))
    little.drop()


@pytest.mark.parametrize(("pieces", "announced"), [(2, False), (1, True)])
def test_mortgage_in_pieces_or_with_hints_is_refused(pieces: int, announced: bool) -> None:
    with pytest.raises(SystemExit, match="of one piece"):
        programs["mortgage"](UNIT, pieces, announced=announced)
