# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ETL of all parts on the workers; the features stay there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmm_uvm_mortgage.cluster import tasks
from rmm_uvm_mortgage.cluster.account import Account, PartSummary, WorkerOutOfMemory
from rmm_uvm_mortgage.cluster.waiting import completed, result_of
from rmm_uvm_mortgage.files import Part

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(slots=True)
class Etl:
    """The results of the ETL, and what it took.

    Parameters
    ----------
    parts : list of distributed.Future
        Features of each part, on workers; see `rmm_uvm_mortgage.cluster.tasks.compute_part`.
    accounts : dict of str to Account
        By title of the part.
    summaries : dict of str to PartSummary
        By title of the part; of those that completed.
    seconds : float
        By the client's clock.
    out_of_memory : WorkerOutOfMemory or None
        Where it ended early.
    """

    parts: list[Future[Any]]
    accounts: dict[str, Account] = field(default_factory=dict)
    summaries: dict[str, PartSummary] = field(default_factory=dict)
    seconds: float = 0.0
    out_of_memory: WorkerOutOfMemory | None = None

    def read(self, client: Client, titles: Sequence[str], done: Callable[[int], None]) -> None:
        """Wait for all parts, and read their figures.

        Parameters
        ----------
        client : distributed.Client
            Connected.
        titles : sequence of str
            Of the parts, in order.
        done : callable
            Told how many parts are complete, whenever one is.

        Raises
        ------
        UvmError
            What a worker raised, or the cluster lost.
        """
        figures = [client.submit(tasks.part_figures, part, pure=False) for part in self.parts]
        title_of = {future.key: title for future, title in zip(figures, titles, strict=True)}
        for count, future in enumerate(completed(client, figures), start=1):
            account, summary = result_of(future)
            title = title_of[future.key]
            raise_refused([account])
            self.accounts[title] = account
            if account.out_of_memory is not None:
                self.out_of_memory = account.out_of_memory
                return
            self.summaries[title] = summary
            done(count)


def start_etl(client: Client, run: str, parts: Sequence[Part]) -> Etl:
    """Have all parts computed, each by one task.

    Parameters
    ----------
    client : distributed.Client
        Connected; its workers have the run's state.
    run : str
        Name of the run.
    parts : sequence of Part
        What to compute.
    """
    return Etl(
        [
            client.submit(tasks.compute_part, run, part, key=f"etl-{run}-{number}", pure=False)
            for number, part in enumerate(parts)
        ]
    )


def finish_etl(
    client: Client, etl: Etl, parts: Sequence[Part], done: Callable[[int], None]
) -> None:
    """Wait until all parts are computed, or memory ran out; raises as `Etl.read`."""
    begun_seconds = time.perf_counter()
    etl.read(client, [part.title for part in parts], done)
    etl.seconds = time.perf_counter() - begun_seconds


def raise_refused(accounts: Iterable[Account]) -> None:
    """Raise the first error among those for which workers refused to work."""
    for account in accounts:
        if account.refused is not None:
            raise account.refused
