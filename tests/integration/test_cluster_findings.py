# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What workers find reaches the client: as events, and as warnings that nobody asked for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from distributed import Client, Scheduler, Worker
from distributed.utils import offload

from rmm_uvm import errors
from rmm_uvm.dask import dashboard
from rmm_uvm.dask.cluster import gathering
from rmm_uvm.dask.cluster.client_warnings import warn_here
from rmm_uvm.dask.cluster.scheduler_plugin import UvmSchedulerPlugin
from rmm_uvm.dask.comm import notices
from rmm_uvm.dask.worker import findings
from rmm_uvm.recording.finding import Finding
from rmm_uvm.watch.telling import delivery

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

FINDING = Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
TEXT = "on 2 workers, at worst on {worker} (device 0): pages leave; use fewer"


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "GATHER_SECONDS", 0.2)


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Scheduler, list[Worker], Client]]:
    async with (
        Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
        Worker(scheduler.address, name="0", **LOCAL) as first,
        Worker(scheduler.address, name="1", **LOCAL) as second,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        for worker in (first, second):
            findings.attach(worker)
            findings.attach(worker)
        try:
            yield scheduler, [first, second], client
        finally:
            for worker in (first, second):
                findings.detach(worker)
                findings.detach(worker)


def find() -> None:
    """Find something, in a thread as a monitor's."""
    thread = threading.Thread(target=delivery.tell, args=(FINDING,))
    thread.start()
    thread.join()


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


async def events_of(client: Client, number: int) -> list[Any]:
    async with asyncio.timeout(30):
        while len(events := await client.get_events("rmm-uvm")) < number:
            await asyncio.sleep(0.01)
    return [message for _, message in events]


def of_ours(caught: list[warnings.WarningMessage]) -> list[warnings.WarningMessage]:
    return [one for one in caught if issubclass(one.category, errors.UvmWarning)]


@contextlib.contextmanager
def caught_here() -> Iterator[list[warnings.WarningMessage]]:
    """Catch all warnings; in this thread lives everything that a test starts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


async def find_until_warned(caught: list[warnings.WarningMessage]) -> None:
    """Find something again and again: a subscription may reach the scheduler after the first."""
    async with asyncio.timeout(30):
        while not of_ours(caught):
            find()
            await asyncio.sleep(0.05)


def test_finding_of_another_thread_becomes_an_event_of_each_worker() -> None:
    async def run() -> tuple[list[Any], list[str]]:
        async with cluster() as (_, workers, client):
            find()
            return await events_of(client, 2), [worker.address for worker in workers]

    events, addresses = asyncio.run(run())

    assert sorted(event["worker"] for event in events) == sorted(addresses)
    assert {event["action"] for event in events} == {"finding"}
    assert {event["category"] for event in events} == {"EvictionWarning"}
    assert {event["value"] for event in events} == {2.0}


def test_notice_of_transfers_becomes_an_event_too() -> None:
    async def run() -> list[Any]:
        async with cluster() as (_, _, client):
            with pytest.warns(errors.IpcPoolWarning):
                notices.Notices().say("nobody hears", "of these")
            for listener in list(notices.NOTICES._listeners):
                listener("waiting", "transfers waited")
            return await events_of(client, 2)

    events = asyncio.run(run())

    assert {event["category"] for event in events} == {"IpcPoolWarning"}
    assert {event["message"] for event in events} == {"transfers waited"}


def test_worker_that_is_detached_or_closed_passes_nothing_on() -> None:
    async def run() -> list[Any]:
        async with cluster() as (_, workers, client):
            findings.detach(workers[0])
            await workers[1].close()
            find()
            await client.log_event("rmm-uvm", "last")
            return await events_of(client, 1)

    assert asyncio.run(run()) == ["last"]
    assert notices.NOTICES._listeners == []


def test_client_is_warned_by_the_scheduler_without_a_call_of_its_user() -> None:
    async def run() -> tuple[list[warnings.WarningMessage], list[str]]:
        async with cluster() as (scheduler, workers, _):
            assert not dashboard.attach(scheduler)  # no page, and warnings all the same
            with caught_here() as caught:
                find()
                await until(lambda: of_ours(caught))
            dashboard.detach(scheduler)
            return of_ours(caught), [worker.address for worker in workers]

    (only,), addresses = asyncio.run(run())

    assert only.category is errors.EvictionWarning
    assert str(only.message) in [TEXT.format(worker=address) for address in addresses]


def test_client_is_not_warned_where_nobody_sees_to_it() -> None:
    async def run() -> list[warnings.WarningMessage]:
        async with cluster() as (_, _, client):
            with caught_here() as caught:
                find()
                await events_of(client, 2)
                await asyncio.sleep(2 * gathering.GATHER_SECONDS)
            return of_ours(caught)

    assert asyncio.run(run()) == []


def test_client_that_asks_is_warned_where_the_scheduler_does_not() -> None:
    async def run() -> list[warnings.WarningMessage]:
        async with cluster() as (_, _, client):
            with caught_here() as caught:
                warn_here(client)
                await find_until_warned(caught)
            return of_ours(caught)

    (only,) = asyncio.run(run())

    assert only.category is errors.EvictionWarning
    assert "on 2 workers, at worst on tcp://" in str(only.message)


@pytest.mark.parametrize("asked_first", [True, False])
def test_client_that_asks_is_not_warned_twice(asked_first: bool) -> None:
    async def run() -> list[warnings.WarningMessage]:
        async with cluster() as (_, _, client):
            with caught_here() as caught:
                if asked_first:
                    warn_here(client)
                await client.register_plugin(UvmSchedulerPlugin())
                if not asked_first:
                    warn_here(client)
                await find_until_warned(caught)
                await asyncio.sleep(2 * gathering.GATHER_SECONDS)
            return of_ours(caught)

    assert len(asyncio.run(run())) == 1


def test_client_that_asked_is_warned_again_when_the_scheduler_stops() -> None:
    async def run() -> list[warnings.WarningMessage]:
        async with cluster() as (scheduler, _, client):
            dashboard.attach(scheduler)
            with caught_here() as caught:
                warn_here(client)
                dashboard.detach(scheduler)
                await find_until_warned(caught)
            return of_ours(caught)

    assert len(asyncio.run(run())) == 1
