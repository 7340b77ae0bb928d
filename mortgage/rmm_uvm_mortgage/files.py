# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finding the files of a data set and dividing them into parts of whole loans.

Layout of a data set::

    names.csv                          seller names and their replacements
    acq/Acquisition_YYYYQn.txt         one row for each loan of that quarter
    perf/Performance_YYYYQn.txt[_part] one row for each loan and month, a loan's rows together

A part is a byte range of a performance file, found on the fly: no file is rewritten. Contents are
checked by the readers, see :mod:`rmm_uvm_mortgage.text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm_mortgage.ranges import TextRange, body_of, split_loans
from rmm_uvm_mortgage.schema import ACQUISITION, NAMES, PERFORMANCE, TableSchema

__all__ = [
    "DataFiles",
    "Part",
    "Quarter",
    "TextRange",
    "divide_quarter",
    "find_files",
    "make_parts",
]

_QUARTER = re.compile(r"(?P<year>\d{4})Q(?P<quarter>[1-4])")


@dataclass(frozen=True, slots=True)
class Part:
    """The input of one ETL task: some loans of a quarter, all acquisitions, and the names."""

    title: str
    performance: TextRange
    acquisition: TextRange
    names: TextRange
    domains: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Quarter:
    """The files of one quarter."""

    title: str
    acquisition: Path
    performance: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of a data set.

    Parameters
    ----------
    directory : Path
        Root of the data set.
    names : Path
        ``names.csv``.
    quarters : tuple of Quarter
        In order of time; not empty.
    """

    directory: Path
    names: Path
    quarters: tuple[Quarter, ...]

    def tables(self) -> list[tuple[Path, TableSchema]]:
        """Return every file with its schema."""
        tables = [(self.names, NAMES)]
        for quarter in self.quarters:
            tables.append((quarter.acquisition, ACQUISITION))
            tables += [(path, PERFORMANCE) for path in quarter.performance]
        return tables


def find_files(directory: Path) -> DataFiles:
    """Find the files of a data set.

    Parameters
    ----------
    directory : Path
        Root of the data set.

    Raises
    ------
    DataError
        The directory, ``names.csv``, all performance files, or the acquisition file of a quarter
        is missing.
    """
    if not directory.is_dir():
        raise DataError(
            f"no data directory {directory}; generate one, or name one that holds names.csv, "
            "acq/ and perf/"
        )
    names = directory / "names.csv"
    if not names.is_file():
        raise DataError(f"{directory} holds no names.csv, which a mortgage data set needs")
    by_quarter: dict[str, list[Path]] = {}
    for path in sorted((directory / "perf").glob("Performance_*"), key=_part_order):
        match = _QUARTER.search(path.name)
        if match and not path.name.endswith(".partial"):
            by_quarter.setdefault(match.group(), []).append(path)
    if not by_quarter:
        raise DataError(
            f"no performance file in {directory / 'perf'}; "
            "expected names such as Performance_2000Q1.txt or Performance_2000Q1.txt_0"
        )
    quarters = []
    for title, performance in sorted(by_quarter.items()):
        acquisition = directory / "acq" / f"Acquisition_{title}.txt"
        if not acquisition.is_file():
            raise DataError(
                f"{acquisition} is missing, but perf/ holds {performance[0].name}; "
                "add it, or remove the quarter's performance files"
            )
        quarters.append(Quarter(title, acquisition, tuple(performance)))
    return DataFiles(directory, names, tuple(quarters))


def _part_order(path: Path) -> tuple[str, int, str]:
    """Order part files by number: ``_10`` after ``_9``."""
    stem, _, suffix = path.name.rpartition("_")
    return (stem, int(suffix), "") if suffix.isdigit() else (path.name, -1, "")


def divide_quarter(quarter: Quarter, parts: int | None) -> list[TextRange]:
    """Divide the performance files of a quarter into parts.

    Parameters
    ----------
    quarter : Quarter
        The files; each is at least one part.
    parts : int or None
        Number of parts wanted, >= the number of files; None takes the files as they are.

    Raises
    ------
    ConfigurationError
        `parts` is below the number of files, or a quarter has fewer loans than parts.
    DataError
        A file is broken, see `body_of`.
    """
    bodies = [body_of(path, PERFORMANCE) for path in quarter.performance]
    if parts is None:
        return bodies
    if parts < len(bodies):
        raise ConfigurationError(
            f"{quarter.title} comes in {len(bodies)} files, {parts} parts were asked for; "
            f"files are never joined: ask for {len(bodies)} or more"
        )
    counts = [parts // len(bodies) + (i < parts % len(bodies)) for i in range(len(bodies))]
    ranges = [r for body, n in zip(bodies, counts, strict=True) for r in split_loans(body, n)]
    if len(ranges) < parts:
        raise ConfigurationError(
            f"{quarter.title} cannot be divided into {parts} parts of whole loans, "
            f"only into {len(ranges)}; ask for fewer"
        )
    return ranges


def make_parts(
    files: DataFiles, domains: Mapping[str, Sequence[str]], parts: int | None = None
) -> list[Part]:
    """Return the parts of all quarters, the ETL's tasks.

    Parameters
    ----------
    files : DataFiles
        The data set.
    domains : mapping of str to sequence of str
        Sorted values of every category domain.
    parts : int or None
        Parts of each quarter, >= 1; None takes the files as they are.

    Raises
    ------
    ConfigurationError, DataError
        See `divide_quarter` and `body_of`.
    """
    if parts is not None and parts < 1:
        raise ConfigurationError(f"parts is {parts}; it must be 1 or more")
    names = body_of(files.names, NAMES)
    result = []
    for quarter in files.quarters:
        acquisition = body_of(quarter.acquisition, ACQUISITION)
        ranges = divide_quarter(quarter, parts)
        for i, performance in enumerate(ranges, start=1):
            title = quarter.title if len(ranges) == 1 else f"{quarter.title} {i}/{len(ranges)}"
            result.append(Part(title, performance, acquisition, names, domains))
    return result
