# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks of loans as text, made by a pool of threads and handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rmm_uvm_mortgage.schema import ACQUISITION, PERFORMANCE, QUARTER_LOANS_LIMIT
from rmm_uvm_mortgage.synthetic import histories
from rmm_uvm_mortgage.synthetic import loans as acquisitions
from rmm_uvm_mortgage.synthetic.loans import BLOCK_LOANS
from rmm_uvm_mortgage.synthetic.text import LineFormatter

FIRST_LOAN_ID = 100_000_000_000


@dataclass(frozen=True, slots=True)
class Block:
    """Data lines of some loans in both tables."""

    acquisition: bytes
    performance: bytes
    performance_rows: int


class BlockMaker:
    """Makes any block of a data set; thread-safe.

    Parameters
    ----------
    seed : int
        Seed of the data set.
    start_year : int
        Year of quarter 0.
    months : int
        Longest history of a loan, in months.
    """

    def __init__(self, seed: int, start_year: int, months: int) -> None:
        self._seed = seed
        self._start_year = start_year
        self._months = months
        self._formatter = LineFormatter()

    def make(self, quarter: int, block: int, loan_count: int = BLOCK_LOANS) -> Block:
        """Make the first `loan_count` loans of a block; quarters and blocks count from 0."""
        rng = np.random.default_rng([self._seed, quarter, block])
        first_id = FIRST_LOAN_ID + quarter * QUARTER_LOANS_LIMIT + block * BLOCK_LOANS
        year = self._start_year + quarter // 4
        loans = acquisitions.make_loans(rng, first_id, year, quarter % 4 + 1)
        history = histories.simulate(rng, loans, self._months)
        performance = histories.to_columns(rng, loans, history, loan_count)
        acquisition = acquisitions.to_columns(loans)
        acquisition = {name: values[:loan_count] for name, values in acquisition.items()}
        return Block(
            self._formatter.format(ACQUISITION, acquisition),
            self._formatter.format(PERFORMANCE, performance),
            len(performance["loan_id"]),
        )

    def make_quarter(
        self, pool: ThreadPoolExecutor, quarter: int, loan_count: int, ahead: int
    ) -> Iterator[Block]:
        """Yield the blocks of a quarter in order, at most `ahead` + 1 of them in memory."""
        pending: deque[Future[Block]] = deque()
        for block in range(-(-loan_count // BLOCK_LOANS)):
            count = min(BLOCK_LOANS, loan_count - block * BLOCK_LOANS)
            pending.append(pool.submit(self.make, quarter, block, count))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
