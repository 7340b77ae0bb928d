# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every input of the corpus, and a few hundred changes of each: the same ones on every run.

`ci/fuzz.sh` goes on from here for as long as it is told.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.planner.sifting import Sieve

from . import json_changes, targets
from .make_corpus import CORPUS, seeds
from .targets import TARGETS, Finding

_CHANGES = 40
_INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return the input with bytes turned, cut out, doubled or made large."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        begin = chance.randint(0, len(found))
        end = min(len(found), begin + chance.choice((1, 1, 2, 8, 64)))
        part = found[begin:end]
        found[begin:end] = chance.choice(
            (b"", part * 2, bytes(len(part)), b"\xff" * len(part), chance.randbytes(len(part)))
        )
    return bytes(found)


@pytest.mark.parametrize("path", _INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_reader_of_any_input_of_the_corpus_holds_its_promises(path: Path) -> None:
    name, data = path.parent.name, path.read_bytes()
    target = TARGETS[name]
    assert len(data) < 4096
    target(data)
    chance = random.Random(data)
    for _ in range(_CHANGES):
        target(changed(data, chance))
        if name in json_changes.SKIPPED:
            target(json_changes.changed(name, data, chance))


def test_corpus_has_every_seed_as_it_is_made() -> None:
    assert set(seeds()) == set(TARGETS)
    for target, files in seeds().items():
        for name, data in files.items():
            kept = (CORPUS / target / name).read_bytes()
            # Machine files are cut from those of the package, whose figures may change.
            assert kept == data or target == "machine", f"{target}/{name}: run fuzz.make_corpus"


def test_target_notices_a_reader_that_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> object:
        return {}["no such key"]

    monkeypatch.setattr(targets, "read", crash)
    with pytest.raises(KeyError):
        TARGETS["trace"](seeds()["trace"]["plain"])


def test_target_notices_events_that_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "iter_events", lambda _: iter(()))
    with pytest.raises(Finding, match="0 events"):
        TARGETS["trace"](seeds()["trace"]["plain"])


def test_target_notices_a_long_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise DataError("one\ntwo\nthree")

    monkeypatch.setattr(targets, "read_rmm_log", refuse)
    with pytest.raises(Finding, match="not one or two lines"):
        TARGETS["rmm-log"](b"")


def test_target_notices_memory_that_is_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    overlapping = seeds()["workload"]["trace-overlap"]
    TARGETS["workload"](overlapping)
    monkeypatch.setattr(Sieve, "_refuse_contradiction", lambda *_: None)
    with pytest.raises(Finding, match="overlaps"):
        TARGETS["workload"](overlapping)
