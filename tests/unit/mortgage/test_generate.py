# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing data sets: sizes, determinism, and failures that leave nothing half-written."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm_mortgage.dictionary import FILE_NAME
from rmm_uvm_mortgage.generate import GeneratorConfig, GeneratorProgress, generate
from rmm_uvm_mortgage.schema import PERFORMANCE
from rmm_uvm_mortgage.synthetic import output


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_generate_two_quarters_writes_all_files(mortgage_data: Path) -> None:
    assert content(mortgage_data).keys() == {
        "names.csv",
        FILE_NAME,
        "acq/Acquisition_2000Q1.txt",
        "acq/Acquisition_2000Q2.txt",
        "perf/Performance_2000Q1.txt",
        "perf/Performance_2000Q2.txt",
    }


def test_generate_twice_with_other_workers_writes_equal_files(tmp_path: Path) -> None:
    config = GeneratorConfig(loans_per_quarter=5000, months=3, seed=11)
    for name, workers in (("a", 1), ("b", 3)):
        generate(tmp_path / name, config, workers=workers)

    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_generate_with_another_seed_writes_other_files(tmp_path: Path) -> None:
    for seed in (1, 2):
        generate(tmp_path / str(seed), GeneratorConfig(loans_per_quarter=5, months=3, seed=seed))

    name = "perf/Performance_2000Q1.txt"
    assert content(tmp_path / "1")[name] != content(tmp_path / "2")[name]


def test_generate_larger_data_begins_with_the_smaller(tmp_path: Path) -> None:
    for loans in (10, 40):
        generate(tmp_path / str(loans), GeneratorConfig(loans_per_quarter=loans, months=3))

    name = "perf/Performance_2000Q1.txt"
    assert content(tmp_path / "40")[name].startswith(content(tmp_path / "10")[name])


def test_generate_has_loan_ids_unique_across_quarters(mortgage_data: Path) -> None:
    ids = [
        line.split("|")[0]
        for path in (mortgage_data / "acq").iterdir()
        for line in path.read_text().splitlines()[1:]
    ]

    assert len(ids) == len(set(ids)) == 600


@pytest.mark.parametrize(
    ("size", "measure"),
    [
        ({"performance_rows": 200_000}, "performance_rows"),
        ({"performance_bytes": 20_000_000}, "performance_bytes"),
    ],
)
def test_generate_by_size_comes_near_it(tmp_path: Path, size: dict[str, int], measure: str) -> None:
    made = generate(tmp_path, GeneratorConfig(**size, quarters=2, months=24))

    asked = next(iter(size.values()))
    assert getattr(made, measure) == pytest.approx(asked, rel=0.05)
    files = list((tmp_path / "perf").iterdir())
    assert made.performance_bytes == sum(path.stat().st_size for path in files)
    lines = sum(len(path.read_bytes().splitlines()) - 1 for path in files)
    assert made.performance_rows == lines


def test_generate_reports_progress_up_to_the_rows_written(tmp_path: Path) -> None:
    seen: list[GeneratorProgress] = []

    made = generate(
        tmp_path, GeneratorConfig(loans_per_quarter=9000, months=2), progress=seen.append
    )

    rows = [progress.performance_rows for progress in seen]
    assert len(rows) == 3
    assert rows == sorted(rows)
    assert rows[-1] == made.performance_rows
    assert seen[-1].expected_performance_rows == pytest.approx(rows[-1], rel=0.1)


def test_generate_with_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk:
        """A file that accepts the header and no more."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, data: bytes) -> int:
            if self._file.tell() > 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self._file.write(data))

    real_output_file = output.output_file

    @contextlib.contextmanager
    def output_file(path: Path, *args: Any) -> Iterator[Any]:
        with real_output_file(path, *args) as file:
            yield FullDisk(file) if path.name.startswith("Performance_2000Q2") else file

    monkeypatch.setattr(output, "output_file", output_file)

    with pytest.raises(DataError, match=r"No space left on device.*make room"):
        generate(tmp_path, GeneratorConfig(loans_per_quarter=5, quarters=2, months=2))

    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"names.csv", "Acquisition_2000Q1.txt", "Performance_2000Q1.txt"}


def test_generate_into_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(DataError, match="cannot be written"):
        generate(tmp_path / "taken", GeneratorConfig(loans_per_quarter=5, months=2))


def test_generate_over_other_quarters_is_refused(mortgage_copy: Path) -> None:
    before = content(mortgage_copy)

    with pytest.raises(ConfigurationError, match="already holds other data"):
        generate(mortgage_copy, GeneratorConfig(loans_per_quarter=5, start_year=2003))

    assert content(mortgage_copy) == before


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"loans_per_quarter": 0},
        {"loans_per_quarter": 1, "performance_rows": 1},
        {"performance_bytes": -1},
        {"loans_per_quarter": 1, "quarters": 0},
        {"loans_per_quarter": 1, "months": 0},
        {"loans_per_quarter": 1, "start_year": 200},
        {"loans_per_quarter": 1, "seed": -1},
    ],
)
def test_generator_config_out_of_range_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        GeneratorConfig(**values)


def test_generate_more_loans_than_a_quarter_can_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="ask for more quarters"):
        generate(tmp_path, GeneratorConfig(performance_rows=10**12))

    assert not list(tmp_path.iterdir())


def test_generate_more_than_the_disk_has_room_for_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    with pytest.raises(ConfigurationError, match=r"takes .* has 1000 B free; make room"):
        generate(tmp_path, GeneratorConfig(loans_per_quarter=50))

    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_generate_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)

    with pytest.raises(AvailabilityError, match="pip install 'rmm-uvm"):
        generate(tmp_path, GeneratorConfig(loans_per_quarter=1))


def test_header_line_of_performance_files_names_the_columns(mortgage_data: Path) -> None:
    first = (mortgage_data / "perf/Performance_2000Q1.txt").read_text().splitlines()[0]

    assert first.split("|") == list(PERFORMANCE.column_names)
