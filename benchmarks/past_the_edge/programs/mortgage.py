# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ETL of the mortgage pipeline, from text to a table of features in host memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.common import harness

PEAK_BYTES_OF_ROW = 983  # 11.8 GB with 12 million rows; the peak itself is measured in each run

SUMMED = ("loan_age", "current_actual_upb", "delinquency_12")


def checksum_of(table: Any) -> int:
    """Return a whole number of a table of features, whatever the order of its rows.

    `features_digest` looks at every value, and takes longer than the ETL.
    """
    import pyarrow.compute as pc

    total = int(table.num_rows)
    for name in SUMMED:
        whole = pc.cast(pc.fill_null(table[name], 0), "int64", safe=False)
        total = 31 * total + pc.sum(whole).as_py()
    return total


class Mortgage:
    """cuDF: a round is the ETL of one part of the mortgage data; a step is one of its stages.

    Parameters
    ----------
    data_bytes : int
        About the most that lives at a time; it says how many rows are generated.
    pieces : int
        1: a round is one part.
    announced : bool
        Must be False: there are no hints in it.
    """

    STEPS, PIECES = 11, 1
    ENGINE = "cudf"
    SIDES = ("resident", "default", "lru", "unseen", "fault-driven")

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        if pieces != 1 or announced:
            raise SystemExit("mortgage is of one piece, and announces nothing")
        from rmm_uvm_mortgage.data_cache import generated_data
        from rmm_uvm_mortgage.dictionary import load_domains
        from rmm_uvm_mortgage.files import find_files, make_parts
        from rmm_uvm_mortgage.generate import GeneratorConfig

        self.operations = self.STEPS
        rows = max(1000, data_bytes // PEAK_BYTES_OF_ROW)
        files = find_files(generated_data(GeneratorConfig(performance_rows=rows)))
        self._part = make_parts(files, load_domains(files), 1)[0]
        self._stages: Iterator[Any] = iter(())

    def make(self) -> None:
        harness.keep_host_memory()  # clearing pages for a new table is no part of it

    def operation(self, number: int) -> int:
        if number == 0:
            self._stages = self._etl()
        table = next(self._stages)
        return number if table is None else checksum_of(table)

    def drop(self) -> None:
        self._stages = iter(())

    def _etl(self) -> Iterator[Any]:
        """Do as `run_etl` does; stop after each stage, and give the table at the end."""
        from rmm_uvm_mortgage.engines import make_engine
        from rmm_uvm_mortgage.steps import delinquency, final, load, window

        engine, part = make_engine(self.ENGINE), self._part
        acquisition = load.load_names_acquisition(engine, part)
        yield
        performance = load.load_performance(engine, part)
        yield
        ever = delinquency.create_ever_features(engine, performance)
        yield
        delinquencies = delinquency.create_delinq_features(engine, performance)
        yield
        ever = delinquency.join_ever_delinq_features(engine, ever, delinquencies)
        del delinquencies
        yield
        joined = window.create_joined_df(engine, performance, ever)
        yield
        windows = window.create_12_mon_features(engine, joined)
        yield
        joined = window.combine_joined_12_mon(engine, joined, windows)
        del windows
        yield
        table = final.final_performance_delinquency(engine, performance, joined)
        del joined
        yield
        table = final.join_perf_acq_gdfs(engine, table, acquisition)
        del acquisition
        yield
        found = final.last_mile_cleaning(engine, table)
        del performance, ever, table
        yield found
