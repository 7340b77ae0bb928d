# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every seed of the corpus and 40 changes of each, the same ones on every run; what grew, as it is.

With few examples of properties, as CI asks for, there are fewer changes.

`ci/fuzz.sh` goes on from here for as long as it is told.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import hypothesis
import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.planner.workload.sifting import Sieve

from . import json_changes, targets
from .make_corpus import CORPUS, FOREIGN, GROWN, seeds
from .targets import TARGETS, Finding

_CHANGES = 40
_MOST_GROWN, _MOST_GROWN_BYTES = 600, 600 << 10  # every checkout has them
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
    for _ in range(_CHANGES * hypothesis.settings().max_examples // 100):
        target(changed(data, chance))
        if name in json_changes.SKIPPED:
            target(json_changes.changed(name, data, chance))


def try_each(name: str, paths: Iterable[Path]) -> None:
    """Give inputs to a target; what breaks names its file."""
    for path in paths:
        try:
            TARGETS[name](path.read_bytes())
        except BaseException as error:
            error.add_note(f"of {path.relative_to(GROWN)}")
            raise


@pytest.mark.parametrize("name", sorted(path.name for path in GROWN.iterdir()))
def test_reader_of_what_grew_holds_its_promises(name: str) -> None:
    try_each(name, sorted((GROWN / name).iterdir()))


def test_input_that_grew_and_breaks_a_promise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> object:
        return {}["no such key"]

    monkeypatch.setattr(targets, "read", crash)
    paths = sorted((GROWN / "trace").iterdir())
    with pytest.raises(KeyError) as caught:
        try_each("trace", paths)
    assert caught.value.__notes__ == [f"of trace/{paths[0].name}"]


def test_what_grew_is_little_and_of_no_machine() -> None:
    files = [path.read_bytes() for path in GROWN.rglob("*") if path.is_file()]
    assert len(set(files)) == len(files) <= _MOST_GROWN
    assert sum(map(len, files)) <= _MOST_GROWN_BYTES
    assert [data for data in files if len(data) > 4096 or FOREIGN.search(data)] == []
    assert FOREIGN.search(b'{"path": "/home/someone/trace"}')


def test_document_says_how_much_grew() -> None:
    text = " ".join((GROWN.parents[2] / "docs/understand/security.md").read_text().split())
    files = [path for path in GROWN.rglob("*") if path.is_file()]
    kib = sum(path.stat().st_size for path in files) / 1024
    assert f"`tests/fuzz/grown`: {len(files)} inputs, {kib:.0f} KiB together." in text


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
