# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for tasks, and turning what Dask raises into one line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError

if TYPE_CHECKING:
    from distributed import Client, Future

_LOOK_EVERY_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
_FORGOTTEN = "the scheduler has forgotten the run: was it restarted?"


def completed(
    client: Client,
    futures: Iterable[Future[Any]],
    *,
    look_every_seconds: float = _LOOK_EVERY_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Iterator[Future[Any]]:
    """Yield futures as they complete, well or not.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    futures : iterable of distributed.Future
        To wait for.
    look_every_seconds : float
        How often to look whether there are still workers while nothing completes.
    patience_seconds : float
        How long a cluster may be without workers, which a nanny starts anew.

    Raises
    ------
    AvailabilityError
        The cluster has lost its scheduler, or all its workers for so long.
    """
    from distributed import wait

    waiting = set(futures)
    alone_since_seconds: float | None = None
    while waiting:
        try:
            with client.as_current():
                done, waiting = wait(
                    waiting, timeout=look_every_seconds, return_when="FIRST_COMPLETED"
                )
        except (CancelledError, asyncio.CancelledError) as error:
            raise AvailabilityError(_FORGOTTEN) from error
        except TimeoutError:
            if worker_addresses(client):
                alone_since_seconds = None
                continue
            now_seconds = time.monotonic()
            alone_since_seconds = alone_since_seconds or now_seconds
            if now_seconds - alone_since_seconds >= patience_seconds:
                raise AvailabilityError(
                    f"the cluster has had no worker for {patience_seconds:.0f} s: see their logs"
                ) from None
        else:
            yield from done


def worker_addresses(client: Client) -> set[str]:
    """Return the addresses of all workers that the cluster has now.

    Raises
    ------
    AvailabilityError
        The scheduler does not answer.
    """
    try:
        return set(client.scheduler_info(n_workers=-1)["workers"])
    except OSError as error:
        raise AvailabilityError(f"the scheduler does not answer any more: {error}") from error


def result_of(future: Future[Any]) -> Any:
    """Return a future's result.

    Raises
    ------
    AvailabilityError
        Workers died of the task, or the scheduler has forgotten it.
    """
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise AvailabilityError(
            f"{error.allowed_failures + 1} workers died one after the other while running "
            f"{error.task}, the last at {error.last_worker.address}: is host memory too small?"
        ) from error
    except (CancelledError, asyncio.CancelledError) as error:
        raise AvailabilityError(_FORGOTTEN) from error
    except RuntimeError as error:
        if "deserialization of the task graph" not in str(error):
            raise
        raise AvailabilityError(
            "the scheduler cannot load the tasks: it has another build of rmm-uvm, or of Dask"
        ) from error
