# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a synthetic mortgage data set of any size in the original file format.

Blocks of loans are made by a pool of threads and written in order, so memory stays bounded and
the files depend only on the configuration. A file appears under its name when it is complete.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm.mortgage.dictionary import FILE_NAME, write_domains
from rmm_uvm.mortgage.schema import ACQUISITION, NAMES, PERFORMANCE, TableSchema
from rmm_uvm.units import format_bytes

_FIRST_LOAN_ID = 100_000_000_000
_LOANS_PER_QUARTER_LIMIT = 100_000_000
"""Loan ids of two quarters must not meet."""


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """What to generate. Give exactly one of the three sizes.

    Parameters
    ----------
    loans_per_quarter : int or None
        Loans acquired in each quarter; 1 to 100 million.
    performance_rows : int or None
        Performance rows of all quarters together, about; the whole number of loans whose rows
        come nearest, judged by a sample of loans.
    performance_bytes : int or None
        Size of all performance files together, in bytes, about.
    start_year : int
        Year of the first quarter; 1980 to 2050.
    quarters : int
        Consecutive quarters, beginning with the first of `start_year`; >= 1.
    months : int
        Longest history of a loan, in months; 1 to 360.
    seed : int
        Same seed, same files; >= 0.
    """

    loans_per_quarter: int | None = None
    performance_rows: int | None = None
    performance_bytes: int | None = None
    start_year: int = 2000
    quarters: int = 1
    months: int = 48
    seed: int = 0

    def __post_init__(self) -> None:
        """Check all values.

        Raises
        ------
        ConfigurationError
            A value is out of its range, or there is not exactly one size.
        """
        sizes = [self.loans_per_quarter, self.performance_rows, self.performance_bytes]
        given = [size for size in sizes if size is not None]
        if len(given) != 1 or given[0] < 1:
            raise ConfigurationError(
                "give one size >= 1: loans_per_quarter, performance_rows or performance_bytes"
            )
        for name, low, high in (
            ("start_year", 1980, 2050),
            ("quarters", 1, 200),
            ("months", 1, 360),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigurationError(f"{name} is {value}; it must be {low} to {high}")
        if (self.loans_per_quarter or 1) > _LOANS_PER_QUARTER_LIMIT:
            raise ConfigurationError(
                f"loans_per_quarter is {self.loans_per_quarter}; the largest quarter has "
                f"{_LOANS_PER_QUARTER_LIMIT}: ask for more quarters"
            )


@dataclass(frozen=True, slots=True)
class GeneratedData:
    """What was written.

    Parameters
    ----------
    directory : Path
        Root of the data set.
    loans, performance_rows, performance_bytes : int
        Totals over all quarters.
    """

    directory: Path
    loans: int
    performance_rows: int
    performance_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the generator is: rows written so far, and the number expected in the end."""

    performance_rows: int
    expected_performance_rows: int


@dataclass(frozen=True, slots=True)
class _Block:
    acquisition: bytes
    performance: bytes
    performance_rows: int


class _BlockMaker:
    """Makes any block of loans; thread-safe."""

    def __init__(self, config: GeneratorConfig) -> None:
        try:
            from rmm_uvm.mortgage.synthetic.text import LineFormatter

            self._formatter = LineFormatter()
        except ImportError as error:
            raise AvailabilityError(
                f"generating data needs {error.name}: pip install 'rmm-uvm[mortgage]'"
            ) from error
        self._config = config

    def make(self, quarter: int, block: int, loans: int) -> _Block:
        """Make the first `loans` loans of a block."""
        import numpy as np

        from rmm_uvm.mortgage.synthetic import histories as hist
        from rmm_uvm.mortgage.synthetic import loans as acq

        rng = np.random.default_rng([self._config.seed, quarter, block])
        first_id = _FIRST_LOAN_ID + quarter * _LOANS_PER_QUARTER_LIMIT + block * acq.BLOCK_LOANS
        year = self._config.start_year + quarter // 4
        drawn = acq.make_loans(rng, first_id, year, quarter % 4 + 1)
        history = hist.simulate(rng, drawn, self._config.months)
        performance = hist.to_columns(rng, drawn, history, loans)
        acquisition = {name: values[:loans] for name, values in acq.to_columns(drawn).items()}
        return _Block(
            self._formatter.format(ACQUISITION, acquisition),
            self._formatter.format(PERFORMANCE, performance),
            len(performance["loan_id"]),
        )


def generate(
    directory: Path,
    config: GeneratorConfig,
    *,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> GeneratedData:
    """Write a data set.

    Parameters
    ----------
    directory : Path
        Where to; made if it does not exist. Files of the same names are replaced.
    config : GeneratorConfig
        What to write.
    workers : int or None
        Threads that make blocks; None for one per CPU of this process. The files are the same.
    progress : callable or None
        Called from this thread after every block.

    Raises
    ------
    AvailabilityError
        numpy or pyarrow is not installed.
    ConfigurationError
        The directory holds a data set with other quarters.
    DataError
        The files can not be written, for example since the disk is full. The file being written
        is removed, complete ones stay.
    """
    maker = _BlockMaker(config)
    loans_per_quarter, rows_per_loan = _plan(config, maker)
    expected_rows = round(loans_per_quarter * config.quarters * rows_per_loan)
    workers = workers or len(os.sched_getaffinity(0))
    directory = Path(directory)
    _refuse_other_quarters(directory, config)
    rows = written_bytes = 0
    try:
        for folder in ("acq", "perf"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        (directory / FILE_NAME).unlink(missing_ok=True)
        with _Output(directory / "names.csv", NAMES) as names:
            from rmm_uvm.mortgage.synthetic.text import names_lines

            names.write(names_lines())
        with ThreadPoolExecutor(workers) as pool:
            for quarter in range(config.quarters):
                title = _title(config, quarter)
                with (
                    _Output(directory / f"acq/Acquisition_{title}.txt", ACQUISITION) as acq,
                    _Output(directory / f"perf/Performance_{title}.txt", PERFORMANCE) as perf,
                ):
                    for block in _in_order(pool, maker, quarter, loans_per_quarter, workers):
                        acq.write(block.acquisition)
                        perf.write(block.performance)
                        rows += block.performance_rows
                        if progress is not None:
                            progress(Progress(rows, expected_rows))
                written_bytes += (directory / f"perf/Performance_{title}.txt").stat().st_size
        from rmm_uvm.mortgage.synthetic.text import sorted_domains

        write_domains(directory, sorted_domains())
    except OSError as error:
        raise DataError(
            f"the data set can not be written to {directory} ({error.strerror}) after "
            f"{format_bytes(written_bytes)}; make room, or choose another directory or size"
        ) from error
    return GeneratedData(directory, loans_per_quarter * config.quarters, rows, written_bytes)


def _title(config: GeneratorConfig, quarter: int) -> str:
    return f"{config.start_year + quarter // 4}Q{quarter % 4 + 1}"


def _refuse_other_quarters(directory: Path, config: GeneratorConfig) -> None:
    """Keep one directory from holding the quarters of two data sets."""
    ours = {f"Performance_{_title(config, q)}.txt" for q in range(config.quarters)}
    others = {path.name for path in (directory / "perf").glob("Performance_*")} - ours
    if others:
        raise ConfigurationError(
            f"{directory} already holds other data, such as {min(others)}; "
            "choose another directory, or remove it"
        )


def _plan(config: GeneratorConfig, maker: _BlockMaker) -> tuple[int, float]:
    """Return loans per quarter and about how many rows a loan has, from one block."""
    from rmm_uvm.mortgage.synthetic.loans import BLOCK_LOANS

    sample = maker.make(0, 0, BLOCK_LOANS)
    rows_per_loan = sample.performance_rows / BLOCK_LOANS
    if config.loans_per_quarter is not None:
        return config.loans_per_quarter, rows_per_loan
    if config.performance_rows is not None:
        loans = config.performance_rows / rows_per_loan
    else:
        loans = (config.performance_bytes or 0) * BLOCK_LOANS / len(sample.performance)
    per_quarter = max(1, round(loans / config.quarters))
    if per_quarter > _LOANS_PER_QUARTER_LIMIT:
        raise ConfigurationError(
            f"that is {per_quarter} loans per quarter, the largest quarter has "
            f"{_LOANS_PER_QUARTER_LIMIT}: ask for more quarters"
        )
    return per_quarter, rows_per_loan


def _in_order(
    pool: ThreadPoolExecutor, maker: _BlockMaker, quarter: int, loans: int, workers: int
) -> Iterator[_Block]:
    """Yield the blocks of a quarter in order, a few of them being made ahead."""
    from rmm_uvm.mortgage.synthetic.loans import BLOCK_LOANS

    pending: deque[Future[_Block]] = deque()
    for block in range(-(-loans // BLOCK_LOANS)):
        count = min(BLOCK_LOANS, loans - block * BLOCK_LOANS)
        pending.append(pool.submit(maker.make, quarter, block, count))
        if len(pending) > workers:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


class _Output:
    """A file with a header line that appears under its name only when it is complete."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        self._path = path
        self._partial = path.with_name(path.name + ".partial")
        self._schema = schema
        self._file: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        from rmm_uvm.mortgage.synthetic.text import header_line

        self._file = self._partial.open("wb")
        self._file.write(header_line(self._schema))
        return self._file

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)
