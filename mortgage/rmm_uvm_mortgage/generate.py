# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a synthetic mortgage data set of any size in the original file format.

Blocks of loans are made by a pool of threads and written in order, so memory stays bounded and
the files depend only on the configuration. A file appears under its name when it is complete.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm.support.units import format_bytes
from rmm_uvm_mortgage.dictionary import FILE_NAME, write_domains
from rmm_uvm_mortgage.schema import ACQUISITION, NAMES, PERFORMANCE, QUARTER_LOANS_LIMIT

if TYPE_CHECKING:
    from rmm_uvm_mortgage.synthetic.blocks import BlockMaker


@dataclass(frozen=True, slots=True)
class GeneratorConfig:
    """The data set to generate. Give exactly one of the three sizes.

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


@dataclass(frozen=True, slots=True)
class GeneratedData:
    """The data set that was written.

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
class GeneratorProgress:
    """How far the generator is: rows written so far, and the number expected in the end."""

    performance_rows: int
    expected_performance_rows: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """The size that a configuration comes to, judged by one block of loans."""

    loans_per_quarter: int
    performance_rows: int
    performance_bytes: int


def generate(
    directory: Path,
    config: GeneratorConfig,
    *,
    workers: int | None = None,
    progress: Callable[[GeneratorProgress], None] | None = None,
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
        The directory holds a data set with other quarters, or has too little room.
    DataError
        The files cannot be written, for example since the disk is full. The file being written
        is removed, complete ones stay.
    """
    try:
        from rmm_uvm_mortgage.synthetic.blocks import BlockMaker
        from rmm_uvm_mortgage.synthetic.output import output_file
        from rmm_uvm_mortgage.synthetic.text import names_lines, sorted_domains

        maker = BlockMaker(config.seed, config.start_year, config.months)
    except ImportError as error:
        raise AvailabilityError(
            f"generating data needs {error.name}: pip install 'rmm-uvm-mortgage[cpu]'"
        ) from error
    plan = _plan(config, maker)
    directory = Path(directory)
    workers = workers or len(os.sched_getaffinity(0))
    rows = written_bytes = 0
    try:
        _refuse_other_quarters(directory, config)
        for folder in ("acq", "perf"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        _refuse_full_disk(directory, plan)
        (directory / FILE_NAME).unlink(missing_ok=True)
        with output_file(directory / "names.csv", NAMES) as names:
            names.write(names_lines())
        with ThreadPoolExecutor(workers) as pool:
            for quarter in range(config.quarters):
                acq_path = directory / "acq" / f"Acquisition_{_title(config, quarter)}.txt"
                perf_path = directory / "perf" / f"Performance_{_title(config, quarter)}.txt"
                with (
                    output_file(acq_path, ACQUISITION) as acq,
                    output_file(perf_path, PERFORMANCE) as perf,
                ):
                    for block in maker.make_quarter(
                        pool, quarter, plan.loans_per_quarter, ahead=workers
                    ):
                        acq.write(block.acquisition)
                        perf.write(block.performance)
                        rows += block.performance_rows
                        if progress is not None:
                            progress(GeneratorProgress(rows, plan.performance_rows))
                written_bytes += perf_path.stat().st_size
        write_domains(directory, sorted_domains())
    except OSError as error:
        raise DataError(
            f"the data set cannot be written to {directory} ({error.strerror or error}) after "
            f"{format_bytes(written_bytes)}; make room, or choose another directory or size"
        ) from error
    return GeneratedData(directory, plan.loans_per_quarter * config.quarters, rows, written_bytes)


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


def _refuse_full_disk(directory: Path, plan: _Plan) -> None:
    """Fail before hours of writing rather than after; acquisitions are left out of account."""
    free_bytes = shutil.disk_usage(directory).free
    if plan.performance_bytes > free_bytes:
        raise ConfigurationError(
            f"the data set takes {format_bytes(plan.performance_bytes)}, {directory} has "
            f"{format_bytes(free_bytes)} free; make room, or choose another directory or size"
        )


def _plan(config: GeneratorConfig, maker: BlockMaker) -> _Plan:
    """Work out the number of loans from the size asked for, by a sample block."""
    from rmm_uvm_mortgage.synthetic.loans import BLOCK_LOANS

    sample = maker.make(quarter=0, block=0)
    rows_per_loan = sample.performance_rows / BLOCK_LOANS
    bytes_per_loan = len(sample.performance) / BLOCK_LOANS
    if config.loans_per_quarter is not None:
        per_quarter = config.loans_per_quarter
    elif config.performance_rows is not None:
        per_quarter = round(config.performance_rows / rows_per_loan / config.quarters)
    else:
        asked_bytes = config.performance_bytes or 0
        per_quarter = round(asked_bytes / bytes_per_loan / config.quarters)
    per_quarter = max(1, per_quarter)
    if per_quarter > QUARTER_LOANS_LIMIT:
        raise ConfigurationError(
            f"that is {per_quarter} loans per quarter, the largest quarter has "
            f"{QUARTER_LOANS_LIMIT}: ask for more quarters"
        )
    loans = per_quarter * config.quarters
    return _Plan(per_quarter, round(loans * rows_per_loan), round(loans * bytes_per_loan))
