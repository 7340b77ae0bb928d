# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The page on a real scheduler's dashboard: there when it can be, gone when it is taken away."""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from bokeh.document import Document
from distributed import Client, Scheduler, Worker
from distributed.utils import offload
from tornado.httpclient import AsyncHTTPClient

import rmm_uvm
from rmm_uvm.dask import dashboard
from rmm_uvm.dask.cluster import scheduler_plugin
from rmm_uvm.dask.cluster.scheduler_plugin import UvmSchedulerPlugin
from rmm_uvm.dask.dashboard import page as dashboard_page
from rmm_uvm.dask.worker import telemetry

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
PATHS = ("rmm-uvm", "individual-rmm-uvm-memory", "individual-rmm-uvm-traffic")
MIB = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


@pytest.fixture
def installed() -> Iterator[Any]:
    keywords: dict[str, Any] = {"driver": "simulated:64MiB", "ipc_pool_size": "4MiB"}
    with rmm_uvm.reinitialize("16MiB", monitor={"on_finding": "log"}, **keywords) as handle:
        yield handle


@contextlib.asynccontextmanager
async def cluster(**keywords: Any) -> AsyncIterator[tuple[Scheduler, Worker]]:
    async with (
        Scheduler(port=0, **LOCAL, **{"dashboard": True, **keywords}) as scheduler,
        Worker(scheduler.address, name="with <b>figures</b>", **LOCAL) as worker,
        Worker(scheduler.address, name="without", **LOCAL),
    ):
        telemetry.attach(worker)
        await worker.heartbeat()
        yield scheduler, worker
        telemetry.detach(worker)


def url(scheduler: Scheduler, path: str) -> str:
    return f"http://127.0.0.1:{scheduler.http_server.port}/{path}"


async def get(scheduler: Scheduler, path: str) -> tuple[int, str]:
    answer = await AsyncHTTPClient().fetch(url(scheduler, path), raise_error=False)
    return answer.code, answer.body.decode()


def document_of(scheduler: Scheduler, path: str) -> Document:
    """Return a document as the dashboard makes it for everyone who opens a page."""
    document = Document()
    history = scheduler.plugins["rmm-uvm"]._history
    dashboard_page.documents(history)[path](scheduler, {}, document)
    return document


def refresh(document: Document) -> None:
    for callback in document.session_callbacks:
        callback.callback()


def text_of(document: Document) -> str:
    """Return the words of the page's table."""
    markup = document.roots[0].children[1].text
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup)))


def test_page_has_a_row_for_each_worker_and_follows_them(installed: Any) -> None:
    async def run() -> tuple[str, str, str]:
        async with cluster() as (scheduler, worker):
            assert dashboard.attach(scheduler)
            document = document_of(scheduler, "/rmm-uvm")
            before = text_of(document)
            pointers.append(installed.managed_mr.allocate(96 * MIB))
            installed.monitor._tick()
            await worker.heartbeat()
            refresh(document)
            return before, text_of(document), worker.address

    pointers: list[int] = []
    before, text, address = asyncio.run(run())
    installed.managed_mr.deallocate(pointers[0], 96 * MIB)

    assert "0 B of 60.00 MiB" in before
    assert "Simulated devices:" in text
    assert f"with <b>figures</b> {address} 0: simulated device" in text  # as it was called
    assert "96.00 MiB of 60.00 MiB 1.60" in text
    assert "IPC pool 4.00 MiB" in text
    assert "device 0: 96.00 MiB are allocated and 60.00 MiB fit on the device" in text
    assert "without tcp://" in text
    assert "no figures: no preload rmm_uvm.dask (or no package) there" in text


def test_page_without_workers_says_so() -> None:
    async def run() -> str:
        async with Scheduler(port=0, dashboard=True, **LOCAL) as scheduler:
            assert dashboard.attach(scheduler)
            return text_of(document_of(scheduler, "/rmm-uvm"))

    assert "No workers are connected." in asyncio.run(run())


def test_page_comes_and_goes_on_a_running_scheduler() -> None:
    async def run() -> None:
        async with cluster() as (scheduler, _):
            assert (await get(scheduler, "rmm-uvm"))[0] == 404
            n_applications = len(scheduler.http_application.applications)
            assert dashboard.attach(scheduler)
            assert dashboard.attach(scheduler)
            assert len(scheduler.http_application.applications) == n_applications + 1
            for path in PATHS:
                assert (await get(scheduler, path))[0] == 200
                assert f'<a href="{path}">' in (await get(scheduler, "status"))[1]

            dashboard.detach(scheduler)
            dashboard.detach(scheduler)
            assert [(await get(scheduler, path))[0] for path in PATHS] == [404] * 3
            status, text = await get(scheduler, "status")
            assert status == 200
            assert "rmm-uvm" not in text
            assert "rmm-uvm" not in scheduler.plugins

    asyncio.run(run())


def test_page_lies_under_the_prefix_of_the_dashboard() -> None:
    async def run() -> None:
        async with cluster(http_prefix="some/where") as (scheduler, _):
            assert dashboard.attach(scheduler)
            assert (await get(scheduler, "some/where/rmm-uvm"))[0] == 200
            assert (await get(scheduler, "rmm-uvm"))[0] == 404

    asyncio.run(run())


def test_scheduler_without_a_dashboard_has_no_page_and_says_why() -> None:
    async def run() -> None:
        async with cluster(dashboard=False) as (scheduler, _):
            page = dashboard.attach(scheduler)
            assert not page
            assert "start it with one (dashboard_address)" in page.reason
            assert (await get(scheduler, "rmm-uvm"))[0] == 404
            dashboard.detach(scheduler)

    asyncio.run(run())


def test_scheduler_without_bokeh_has_no_page_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        async with cluster() as (scheduler, _):
            with monkeypatch.context() as patched:
                for name in [name for name in sys.modules if name.split(".")[0] == "bokeh"]:
                    patched.setitem(sys.modules, name, None)
                page = dashboard.attach(scheduler)
            assert not page
            assert "pip install 'rmm-uvm[dask]'" in page.reason
            assert (await get(scheduler, "rmm-uvm"))[0] == 404

    asyncio.run(run())


def test_plugin_that_is_registered_adds_the_page_and_unregistering_takes_it_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        async with (
            cluster() as (scheduler, _),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await client.register_plugin(UvmSchedulerPlugin())
            await client.register_plugin(UvmSchedulerPlugin())
            assert (await get(scheduler, "rmm-uvm"))[0] == 200
            plugin = scheduler.plugins["rmm-uvm"]
            assert plugin.page
            assert dashboard.attach(scheduler)  # it is there
            assert scheduler.plugins["rmm-uvm"] is plugin

            await client.unregister_scheduler_plugin("rmm-uvm")
            async with asyncio.timeout(30):
                while (await get(scheduler, "rmm-uvm"))[0] != 404:
                    await asyncio.sleep(0.01)
            assert plugin.page.reason == "the plugin was stopped"

    monkeypatch.setattr(scheduler_plugin, "_TICK_MILLISECONDS", 20)
    asyncio.run(run())


def test_plots_of_their_own_have_a_bar_for_each_worker_and_lines(installed: Any) -> None:
    async def run() -> list[Any]:
        async with cluster() as (scheduler, _):
            dashboard.attach(scheduler)
            scheduler.plugins["rmm-uvm"]._tick()
            documents = [document_of(scheduler, f"/{path}") for path in PATHS[1:]]
            return [one.roots[0].renderers[0].data_source.data for one in documents]

    memory, traffic = asyncio.run(run())

    assert memory["worker"] == ["with <b>figures</b>", "without"]
    assert memory["footprint_text"] == ["0 B", "-"]
    assert memory["capacity"][0] == 60 * MIB
    assert len(traffic["seconds"]) == 1
