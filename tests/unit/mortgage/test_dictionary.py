# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Category values: from categories.json, or by a scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.dictionary import FILE_NAME, load_domains, scan_domains
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.files import find_files, make_parts
from rmm_uvm_mortgage.schema import CLOSED_DOMAINS
from rmm_uvm_mortgage.steps.load import load_performance


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_load_domains_of_generated_data_finds_what_a_scan_finds(mortgage_data: Path) -> None:
    files = find_files(mortgage_data)

    assert load_domains(files) == scan_domains(files)


def test_scan_domains_of_foreign_data_takes_all_values_sorted(mortgage_copy: Path) -> None:
    (mortgage_copy / FILE_NAME).unlink()
    path = mortgage_copy / "names.csv"
    path.write_text(path.read_text() + "ZZ TOP BANK|AARDVARK\n")
    scanned: list[str] = []

    domains = load_domains(find_files(mortgage_copy), progress=lambda p: scanned.append(p.name))

    assert domains["seller"][0] == "AARDVARK"
    assert domains["seller"][-1] == "ZZ TOP BANK"
    assert all(list(values) == sorted(values) for values in domains.values())
    assert all(set(values) <= set(domains[name]) for name, values in CLOSED_DOMAINS.items())
    assert len(scanned) == 5


def test_scan_domains_of_a_broken_file_fails(mortgage_copy: Path) -> None:
    (mortgage_copy / FILE_NAME).unlink()
    path = mortgage_copy / "perf/Performance_2000Q2.txt"
    path.write_text(path.read_text().replace("|08/01/2000|", "|08/41/2000|"))

    with pytest.raises(DataError, match=r"Performance_2000Q2.txt is broken: .*08/41/2000"):
        load_domains(find_files(mortgage_copy))


def test_load_domains_with_a_shortened_file_says_truncated(mortgage_copy: Path) -> None:
    path = mortgage_copy / "perf/Performance_2000Q1.txt"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))

    with pytest.raises(DataError, match=r"Performance_2000Q1.txt has .* bytes.*truncated"):
        load_domains(find_files(mortgage_copy))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"domains": {}, "file_bytes": {}}', "\xff"])
def test_load_domains_of_broken_json_says_what_to_do(mortgage_copy: Path, text: str) -> None:
    (mortgage_copy / FILE_NAME).write_bytes(text.encode("latin-1"))

    with pytest.raises(DataError, match=f"remove {FILE_NAME} to have the files scanned"):
        load_domains(find_files(mortgage_copy))


@pytest.mark.parametrize("values", [["A", 1], [1, 2], [["A"]], "AB", None], ids=repr)
def test_load_domains_of_values_that_are_no_names_says_which(
    mortgage_copy: Path, values: object
) -> None:
    domains = json.loads((mortgage_copy / FILE_NAME).read_text())["domains"]
    edit(mortgage_copy / FILE_NAME, domains={**domains, "servicer": values})

    with pytest.raises(DataError, match=rf"domains\['servicer'\].* is .*remove {FILE_NAME}"):
        load_domains(find_files(mortgage_copy))


def test_load_domains_of_sizes_that_are_none_says_what_to_do(mortgage_copy: Path) -> None:
    edit(mortgage_copy / FILE_NAME, file_bytes=[1])

    with pytest.raises(DataError, match=rf"file_bytes is \[1\].*remove {FILE_NAME}"):
        load_domains(find_files(mortgage_copy))


def test_a_value_missing_from_the_dictionary_is_an_error(mortgage_copy: Path) -> None:
    domains = json.loads((mortgage_copy / FILE_NAME).read_text())["domains"]
    edit(mortgage_copy / FILE_NAME, domains={**domains, "servicer": domains["servicer"][1:]})
    files = find_files(mortgage_copy)
    part = make_parts(files, load_domains(files))[0]

    with pytest.raises(DataError, match=f"servicer holds '{domains['servicer'][0]}'"):
        load_performance(make_engine("pandas"), part)


def test_codes_are_lexical_ranks_and_null_stays_null(mortgage_data: Path) -> None:
    files = find_files(mortgage_data)
    domains = load_domains(files)
    part = make_parts(files, domains)[0]
    fields = [line.split("|")[2] for line in part.performance.path.read_text().splitlines()[1:]]

    engine = make_engine("pandas")
    codes = engine.to_host(load_performance(engine, part)).column("servicer").to_pylist()

    assert codes == [domains["servicer"].index(f) if f else None for f in fields]
    assert None in codes
