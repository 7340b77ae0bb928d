# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The dashboard's page in a real browser: it draws, follows the workers, and fits any window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Scheduler, Worker
from distributed.utils import offload

import rmm_uvm
from rmm_uvm.dask import dashboard
from rmm_uvm.dask.worker import telemetry

from .browser import Page, opened

# Dask's own warnings are no business of these tests.
# Starting a browser on a busy machine takes its time.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]

LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
MIB = 1 << 20
HOSTILE = "<img src=x onerror=\"document.title='broken'\">" + 60 * "long"
# Bokeh's models lie in shadow roots within shadow roots.
FIND = """
(() => {
  const all = (root, what) => [...root.querySelectorAll('*')].flatMap(
    (one) => one.shadowRoot
      ? [...one.shadowRoot.querySelectorAll(what), ...all(one.shadowRoot, what)] : []);
  window.all = (what) => all(document, what);
  return true;
})()
"""
TEXT = "all('table')[0].innerText"
CUT = """
all('.cards li, td, tbody th').filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.innerText)
"""
EDGES = "all('table, .cards, .legend').map((one) => one.getBoundingClientRect().right)"


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


def look(profile: Path, url: str, change: Callable[[], None]) -> None:
    """Look at the page in windows of two widths, and at what changes."""
    with opened(profile) as page:
        resize(page, 1400)
        page.call("Page.navigate", url=url)
        page.wait("document.querySelector('.bk-Column')")
        assert page.evaluate(FIND)
        page.wait("all('table').length == 1 && all('canvas').length > 0")
        assert "0 B of 60.00 MiB" in page.evaluate(TEXT)
        assert HOSTILE[:40] in page.evaluate(TEXT)
        change()
        page.wait(f"{TEXT}.includes('96.00 MiB of 60.00 MiB')")
        for width in (1400, 700, 360):
            resize(page, width)
            page.wait(f"innerWidth == {width}")
            page.wait(f"all('canvas')[0].getBoundingClientRect().width <= {width}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CUT) == []
            assert max(page.evaluate(EDGES)) <= width
        assert page.evaluate("document.title") == "Dask: managed memory"
        kinds = [one.get("type") or one.get("entry", {}).get("level") for one in page.complaints()]
        assert not {"error", "warning", None} & set(kinds), page.complaints()


def resize(page: Page, width: int) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )


def test_page_draws_follows_and_fits(tmp_path: Path) -> None:
    pointers: list[int] = []
    keywords: dict[str, Any] = {"driver": "simulated:64MiB", "ipc_pool_size": "4MiB"}

    async def run(installed: Any) -> None:
        loop = asyncio.get_running_loop()
        async with (
            Scheduler(port=0, dashboard=True, **LOCAL) as scheduler,
            Worker(scheduler.address, name=HOSTILE, **LOCAL) as worker,
            Worker(scheduler.address, name="other", **LOCAL),
        ):
            telemetry.attach(worker)
            await worker.heartbeat()
            assert dashboard.attach(scheduler)

            def change() -> None:
                pointers.append(installed.managed_mr.allocate(96 * MIB))
                installed.monitor._tick()
                asyncio.run_coroutine_threadsafe(worker.heartbeat(), loop).result()

            url = f"http://127.0.0.1:{scheduler.http_server.port}/rmm-uvm"
            await asyncio.to_thread(look, tmp_path, url, change)
            telemetry.detach(worker)

    with rmm_uvm.reinitialize("16MiB", monitor={"on_finding": "log"}, **keywords) as installed:
        asyncio.run(run(installed))
        installed.managed_mr.deallocate(pointers[0], 96 * MIB)
