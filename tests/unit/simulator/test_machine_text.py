# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The text of machine files: there and back, and what is wrong with one, by file and key."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import DataError
from rmm_uvm.support.machine_files import format_machine, load_machine, parse_machine
from rmm_uvm.support.machine_profile import CONSTANTS

MACHINE = load_machine("h200-pcie5")
TEXT = format_machine(MACHINE)
COPY = '[constants.copy_ns]\nvalue = 1400.0\nunit = "ns"'


def broken(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def test_parse_formatted_machine_is_equal() -> None:
    assert parse_machine(TEXT, "file") == MACHINE


@st.composite
def values(draw: st.DrawFn) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, constant in CONSTANTS.items():
        least, most = constant.minimum, constant.maximum
        if constant.is_whole:
            changes[name] = draw(st.integers(int(least), int(most)))
        else:
            zero = st.just(0.0) if constant.may_be_zero else st.nothing()
            changes[name] = draw(st.floats(least, most, allow_subnormal=False) | zero)
    return changes


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@pytest.mark.parametrize(("lacking", "end"), [(5, "$"), (6, " and 1 more$"), (8, " and 3 more$")])
def test_missing_constants_are_named_up_to_five(lacking: int, end: str) -> None:
    kept = list(CONSTANTS)[: len(CONSTANTS) - lacking]
    names = list(CONSTANTS)[len(kept) :]
    text = TEXT[: TEXT.index(f"[constants.{names[0]}]")]
    with pytest.raises(DataError, match=f"constants are missing: {', '.join(names[:5])}{end}"):
        parse_machine(text, "file")


@given(values(), texts, texts)
def test_parse_formatted_machine_is_equal_whatever_it_holds(
    changes: dict[str, Any], words: str, source: str
) -> None:
    machine = MACHINE.replace(
        **changes, gpu=words, description=words, sources=dict.fromkeys(CONSTANTS, source)
    )
    assert parse_machine(format_machine(machine), "file") == machine


@given(st.text(max_size=200))
def test_parse_any_text_is_a_machine_or_a_data_error(text: str) -> None:
    with pytest.raises(DataError, match=r"^file"):
        parse_machine(text, "file")


@given(st.integers(0, len(TEXT) - 1), st.text(max_size=8))
def test_parse_damaged_text_is_a_machine_or_a_data_error(place: int, damage: str) -> None:
    text = TEXT[:place] + damage + TEXT[place + len(damage) :]
    with contextlib.suppress(DataError):  # and nothing else
        assert set(parse_machine(text, "file").constants()) == set(CONSTANTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            broken(COPY, COPY.replace("1400.0", "-1")),
            r"constants\.copy_ns\.value is -1: expected a number >= 0 and <= 1e\+09, in ns",
        ),
        (broken(COPY, COPY.replace("1400.0", "nan")), r"constants\.copy_ns\.value is nan"),
        (broken(COPY, COPY.replace("1400.0", "inf")), r"constants\.copy_ns\.value is inf"),
        (
            broken(COPY, COPY.replace("1400.0", '"1400"')),
            r"constants\.copy_ns\.value is '1400' is not a number",
        ),
        (
            broken(COPY, COPY.replace("1400.0", "true")),
            r"constants\.copy_ns\.value is True is not a number",
        ),
        (broken(COPY, COPY.replace("1400.0", "9" * 5000)), "file is not valid TOML"),
        (
            broken(COPY, COPY.replace("value", "vale")),
            r"unknown key of \[constants\.copy_ns\] 'vale'; did you mean 'value'",
        ),
        (broken(COPY, '[constants.copy_ns]\nunit = "ns"'), r"constants\.copy_ns\.value is missing"),
        (
            broken(COPY, COPY.replace('"ns"', '"us"')),
            r"constants\.copy_ns\.unit is 'us': expected 'ns'",
        ),
        (
            broken(COPY, "[constants.copy_ns]\nvalue = 1400.0"),
            r"constants\.copy_ns\.unit is missing",
        ),
        (
            broken("[constants.copy_ns]", "[constants.copy_us]"),
            r"unknown constant 'copy_us'; did you mean 'copy_ns'",
        ),
        (broken("[constants.copy_ns]", "[copy_ns]"), "unknown table 'copy_ns'"),
        (
            broken("value = 55.5\n", "value = 0\n"),
            r"constants\.to_device_bytes_per_ns\.value is 0: expected a number >= 0\.001",
        ),
        (
            broken("value = 100\n", "value = 100.5\n"),
            r"constants\.outstanding_faults\.value is 100\.5: expected a whole",
        ),
        (
            broken("value = 0.85\n", "value = 1.5\n"),
            r"constants\.duplex_fraction\.value is 1\.5: .*<= 1",
        ),
        (broken('name = "h200-pcie5"', 'name = "h200/pcie5"'), "machine name 'h200/pcie5'"),
        (broken('name = "h200-pcie5"\n', ""), r"machine\.name is missing"),
        (broken('gpu = "', 'gpu = "" # "'), r"machine\.gpu is ''"),
        (broken("measured = true", "measured = 1"), r"machine\.measured is 1: true or false"),
        (broken("measured = true\n", ""), r"machine\.measured is missing"),
        (
            broken("measured = true", "mensured = true"),
            r"unknown key of \[machine\] 'mensured'; did you mean 'measured'",
        ),
        (TEXT[: TEXT.index("[constants.launch_ns]")], "constants are missing: launch_ns$"),
        (TEXT[: TEXT.index("[constants.")], r"there is no table \[constants\]"),
        (TEXT[TEXT.index("[constants.") :], r"there is no table \[machine\]"),
        ("machine = 3\n" + TEXT[TEXT.index("[constants.") :], r"there is no table \[machine\]"),
        ("", r"there is no table \[machine\]"),
    ],
)
def test_parse_wrong_text_names_file_and_key(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        parse_machine(text, "file")
    assert str(error.value).startswith("file")
    assert len(str(error.value)) < 300


def test_parse_without_a_source_asks_for_one() -> None:
    line = next(line for line in TEXT.splitlines() if line.startswith("source"))
    for wrong in ("", 'source = ""', "source = 3"):
        with pytest.raises(DataError, match=r"source is .*: say where the value is from"):
            parse_machine(broken(line, wrong), "file")


def test_parse_whole_numbers_where_fractions_may_be_are_accepted() -> None:
    machine = parse_machine(broken(COPY, COPY.replace("1400.0", "1400")), "file")
    assert type(machine.copy_ns) is float
    assert machine == MACHINE
