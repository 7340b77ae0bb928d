# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finding files and dividing them into parts of whole loans."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm_mortgage.files import divide_quarter, find_files, make_parts
from rmm_uvm_mortgage.ranges import TextRange, body_of, split_loans
from rmm_uvm_mortgage.schema import PERFORMANCE

PERFORMANCE_FILE = "perf/Performance_2000Q1.txt"


def text_of(part: TextRange) -> bytes:
    return part.path.read_bytes()[part.begin_bytes : part.end_bytes]


def loans_of(part: TextRange) -> list[bytes]:
    return list(dict.fromkeys(line.split(b"|")[0] for line in text_of(part).splitlines()))


# -- dividing --------------------------------------------------------------------------------------


@given(
    rows=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    parts=st.integers(1, 12),
    ends_with_newline=st.booleans(),
    filler=st.integers(0, 30),
)
def test_split_loans_of_any_file_keeps_every_line_and_every_loan_together(
    rows: list[int], parts: int, ends_with_newline: bool, filler: int
) -> None:
    lines = [
        f"{90 + loan}|{month}|{'x' * filler}" for loan, n in enumerate(rows) for month in range(n)
    ]
    text = "header\n" + "\n".join(lines) + "\n" * ends_with_newline
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "file.txt"
        path.write_text(text)
        body = TextRange(path, len("header\n"), len(text))

        ranges = split_loans(body, parts)

        assert b"".join(text_of(r) for r in ranges) == text_of(body)
        loans = [loan for r in ranges for loan in loans_of(r)]
    assert len(loans) == len(set(loans)) == len(rows)
    assert 1 <= len(ranges) <= parts


@given(st.integers(1, 8))
def test_split_loans_of_equal_loans_gives_equal_parts(parts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "file.txt"
        path.write_text("h\n" + "".join(f"{100 + i}|a\n{100 + i}|b\n" for i in range(160)))

        ranges = split_loans(TextRange(path, 2, path.stat().st_size), parts)

        sizes = [r.size_bytes for r in ranges]
    assert len(sizes) == parts
    assert max(sizes) - min(sizes) <= 3 * len("100|a\n100|b\n")


def test_make_parts_divides_every_quarter(mortgage_data: Path) -> None:
    parts = make_parts(find_files(mortgage_data), {}, 3)

    assert [part.title for part in parts] == [
        f"{quarter} {i}/3" for quarter in ("2000Q1", "2000Q2") for i in (1, 2, 3)
    ]
    assert {part.acquisition.path.name for part in parts[:3]} == {"Acquisition_2000Q1.txt"}


def split_file(directory: Path, pieces: int) -> None:
    """Write a performance file as part files, as the original data come."""
    path = directory / PERFORMANCE_FILE
    header = path.read_bytes().splitlines(keepends=True)[0]
    for i, part in enumerate(split_loans(body_of(path, PERFORMANCE), pieces)):
        path.with_name(f"{path.name}_{i}").write_bytes(header + text_of(part))
    path.unlink()


def test_part_files_are_taken_as_they_are_in_numeric_order(mortgage_copy: Path) -> None:
    split_file(mortgage_copy, 12)
    quarter = find_files(mortgage_copy).quarters[0]

    ranges = divide_quarter(quarter, None)

    assert [r.path.name for r in ranges] == [f"Performance_2000Q1.txt_{i}" for i in range(12)]


def test_part_files_are_divided_further_but_never_joined(mortgage_copy: Path) -> None:
    split_file(mortgage_copy, 2)
    quarter = find_files(mortgage_copy).quarters[0]

    assert len(divide_quarter(quarter, 5)) == 5
    with pytest.raises(ConfigurationError, match="files are never joined"):
        divide_quarter(quarter, 1)


def test_more_parts_than_loans_are_refused(mortgage_data: Path) -> None:
    with pytest.raises(ConfigurationError, match="only into 300; ask for fewer"):
        make_parts(find_files(mortgage_data), {}, 10_000)


@pytest.mark.parametrize("parts", [0, -1])
def test_parts_below_one_are_refused(mortgage_data: Path, parts: int) -> None:
    with pytest.raises(ConfigurationError, match="must be 1 or more"):
        make_parts(find_files(mortgage_data), {}, parts)


# -- missing and broken files ----------------------------------------------------------------------


def test_find_files_without_directory_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data directory .*none; generate one"):
        find_files(tmp_path / "none")


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        ("names.csv", "no names.csv"),
        ("acq/Acquisition_2000Q2.txt", "Acquisition_2000Q2.txt is missing"),
    ],
)
def test_find_files_with_a_missing_file_names_it(
    mortgage_copy: Path, remove: str, message: str
) -> None:
    (mortgage_copy / remove).unlink()

    with pytest.raises(DataError, match=message):
        find_files(mortgage_copy)


def test_find_files_without_performance_files_names_the_pattern(mortgage_copy: Path) -> None:
    for path in (mortgage_copy / "perf").iterdir():
        path.unlink()

    with pytest.raises(DataError, match=r"expected names such as Performance_2000Q1.txt"):
        find_files(mortgage_copy)


def test_find_files_ignores_a_partial_file(mortgage_copy: Path) -> None:
    (mortgage_copy / "perf/Performance_2000Q3.txt.partial").write_text("header\n")

    assert [q.title for q in find_files(mortgage_copy).quarters] == ["2000Q1", "2000Q2"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: b"", "is empty"),
        (lambda text: text.splitlines(keepends=True)[0], "no data lines"),
        (lambda text: text[:-20], "last line has .* columns.*truncated"),
        (lambda text: text.replace(b"|", b","), "second line has 1 columns"),
    ],
    ids=["empty", "header only", "truncated", "other delimiter"],
)
def test_body_of_a_broken_file_names_file_and_fault(
    mortgage_copy: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    path = mortgage_copy / PERFORMANCE_FILE
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(DataError, match=f"Performance_2000Q1.txt.*{message}"):
        body_of(path, PERFORMANCE)


def test_body_of_a_directory_says_it_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        body_of(tmp_path, PERFORMANCE)
