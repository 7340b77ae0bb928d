# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eviction policies and prefetch modes are the same wherever their names are listed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import yaml

from rmm_uvm._lib import residency as compiled
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.pool.installation import _prefetch_row
from rmm_uvm.residency import POLICIES
from rmm_uvm.residency.policies import SIMPLE_POLICIES
from rmm_uvm.support.settings import PrefetchMode

REPOSITORY = Path(__file__).resolve().parents[3]
MODES = get_args(PrefetchMode)
# Names that make a bracketed list of words a list of policies, or of modes.
MARKS = {"policies": {"fifo", "correlation"}, "modes": {"auto", "never"}}
NAMES = {"policies": POLICIES, "modes": MODES}
KINDS = pytest.mark.parametrize("kind", NAMES)
SETTING = {"policies": "eviction", "modes": "prefetch"}


def lists(text: str) -> Iterator[set[str]]:
    """Yield the lists of quoted words in Python text, docstrings included."""
    for inside in re.findall(r'[\[({]\s*("\w[\w-]*"(?:,\s*"\w[\w-]*")+),?\s*[\])}]', text):
        yield set(re.findall(r'"([^"]+)"', inside))


def wrong_lists(text: str, kind: str, names: Collection[str]) -> list[set[str]]:
    """Return the lists of such names that are not exactly `names`."""
    return [words for words in lists(text) if words >= MARKS[kind] and words != set(names)]


def row_of(text: str, setting: str) -> list[str]:
    """Return the cells of names in the rows of a document that a setting has."""
    return re.findall(rf"^\| `{setting}` \| (.*?) \|", text, re.MULTILINE)


def lacking(cells: list[str], names: Collection[str]) -> list[tuple[str, str]]:
    """Return which name is missing in which cell."""
    return [
        (name, cell) for cell in cells for name in names if name not in re.findall(r"\w+", cell)
    ]


@KINDS
def test_every_list_in_the_package_has_every_name(kind: str) -> None:
    texts = {
        str(path.relative_to(REPOSITORY)): path.read_text()
        for path in sorted((REPOSITORY / "rmm_uvm").rglob("*.py*"))
        if path.suffix in {".py", ".pyi", ".pyx"}
    }
    found = [name for name, text in texts.items() for words in lists(text) if words >= MARKS[kind]]
    assert len(found) > 2  # of docstrings: the list itself is in rmm_uvm/support/settings.py
    wrong = {name: wrong_lists(text, kind, NAMES[kind]) for name, text in texts.items()}
    assert {name: words for name, words in wrong.items() if words} == {}


@KINDS
def test_list_without_a_new_name_is_found(kind: str) -> None:
    listed = ", ".join(f'"{name}"' for name in NAMES[kind])
    text = f"    eviction : {{{listed}}} or None\n"
    assert wrong_lists(text, kind, NAMES[kind]) == []
    assert wrong_lists(text, kind, (*NAMES[kind], "another")) == [set(NAMES[kind])]


def test_compiled_part_knows_every_name_and_no_other() -> None:
    # A name that is missing in rmm_uvm/_lib/residency.pyx is a KeyError there.
    assert set(compiled._POLICIES) == set(POLICIES)
    assert set(compiled._MODES) == set(MODES)


def test_policies_that_predict_are_those_that_the_compiled_part_gives_a_predictor() -> None:
    source = (REPOSITORY / "cpp/src/residency/eviction_policy.cpp").read_text()
    body = source.partition("make_predictor(eviction_policy policy)")[2].partition("\n}")[0]
    cases = re.findall(r"eviction_policy::(\w+):(?:\s*return\s+(\S+?)[;(<])?", body)
    assert {name for name, _ in cases} == set(POLICIES)
    assert {name for name, made in cases if made == "std::make_unique"} == (
        set(POLICIES) - set(SIMPLE_POLICIES)
    )


def test_every_mode_has_a_reason_where_it_is_installed() -> None:
    device: Any = SimpleNamespace(
        concurrent_managed_access=Availability(True, ""), integrated=False
    )
    assert len({_prefetch_row(mode, device)[2] for mode in MODES}) == len(MODES)


@pytest.mark.parametrize(
    ("setting", "kind", "rows"),
    [
        ("RMM_UVM_EVICTION", "policies", 1),
        ("eviction", "policies", 2),
        ("prefetch", "modes", 2),
    ],
)
def test_configuration_has_every_name_in_every_row(setting: str, kind: str, rows: int) -> None:
    cells = row_of((REPOSITORY / "docs/use/configuration.md").read_text(), setting)
    assert len(cells) == rows
    assert lacking(cells, NAMES[kind]) == []
    assert lacking(cells, ["another"]) == [("another", cell) for cell in cells]


def dask_names(kind: str) -> dict[str, set[str]]:
    """Return the names in Dask's schema, and in the comment above the default."""
    folder, setting = REPOSITORY / "rmm_uvm/dask", SETTING[kind]
    schema = yaml.safe_load((folder / "rmm-uvm-schema.yaml").read_text())
    entry = schema["properties"]["rmm-uvm"]["properties"][setting]
    text = (folder / "rmm-uvm.yaml").read_text()
    (lines,) = re.findall(rf"((?:^  # .*\n)+)  {setting}: ", text, re.MULTILINE)
    return {"schema": set(entry["enum"]) - {None}, "defaults": set(re.findall(r"\w+", lines))}


@KINDS
def test_dask_takes_every_name_and_tells_it_beside_the_default(kind: str) -> None:
    found = dask_names(kind)
    assert found["schema"] == set(NAMES[kind])
    assert set(NAMES[kind]) <= found["defaults"]
    assert "another" not in found["defaults"]
