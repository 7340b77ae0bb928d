# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`UvmPlugin` on workers that run, in this process, on a simulated device."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Awaitable, Callable
from typing import Any

import cloudpickle
import dask
import pytest
import rmm
import rmm.statistics
from distributed import Client, Scheduler, Worker

import rmm_uvm
from rmm_uvm.dask import UvmPlugin
from rmm_uvm.dask.comm.staging import current_staging
from rmm_uvm.errors import ConfigurationError

from . import dask_in_process as cluster

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

MIB = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    cluster.start_offload_thread()


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")


def on_a_worker(
    test: Callable[[Client, Worker], Awaitable[None]], *arguments: str, preload: bool = False
) -> None:
    """Run a test with a client and a worker, the worker with the preload if asked for."""

    async def with_worker(scheduler: Scheduler) -> None:
        async with (
            cluster.worker(
                scheduler, *arguments, preload="rmm_uvm.dask" if preload else ""
            ) as worker,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await test(client, worker)

    cluster.run(with_worker)
    assert rmm_uvm.current_installation() is None


def initial_bytes() -> int:
    installation = rmm_uvm.current_installation()
    assert installation is not None
    return installation.devices[0].sizes.initial_bytes


def test_plugin_installs_the_pool_on_a_running_worker_and_removing_it_restores() -> None:
    before = rmm.mr.get_per_device_resource(0)

    async def test(client: Client, worker: Worker) -> None:
        assert rmm_uvm.current_installation() is None
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        assert list(worker.plugins) == ["shuffle", "rmm-uvm"]
        assert initial_bytes() == 16 * MIB
        await client.unregister_worker_plugin("rmm-uvm")
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is None
        assert rmm.mr.get_per_device_resource(0) is before

    on_a_worker(test)


def test_plugin_takes_its_pool_down_from_under_an_adaptor_of_rmm() -> None:
    before = rmm.mr.get_per_device_resource(0)

    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        installed = rmm_uvm.current_installation()
        assert installed is not None
        below = installed.managed_mr.managed_mr
        over = rmm.mr.StatisticsResourceAdaptor(installed.managed_mr)
        rmm.mr.set_per_device_resource(0, over)
        await client.register_plugin(UvmPlugin(initial_pool_size="24MiB"))  # made again under it
        assert initial_bytes() == 24 * MIB
        assert rmm.mr.get_per_device_resource(0) is not over
        del installed, over
        assert below.slab_bytes == 0
        rmm.statistics.enable_statistics()
        await client.unregister_worker_plugin("rmm-uvm")
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is None
        assert rmm.mr.get_per_device_resource(0) is before

    on_a_worker(test)


def test_plugin_taken_down_twice_or_where_it_never_was_is_no_error() -> None:
    async def test(client: Client, worker: Worker) -> None:
        plugin = UvmPlugin(initial_pool_size="16MiB")
        plugin.teardown(worker)
        await client.register_plugin(plugin)
        plugin.teardown(worker)
        plugin.teardown(worker)
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is None
        await client.unregister_worker_plugin("rmm-uvm")
        assert "rmm-uvm" not in worker.metrics

    on_a_worker(test)


def test_plugin_reaches_workers_that_join_later() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        await worker.close()
        assert rmm_uvm.current_installation() is None
        async with cluster.worker(worker.scheduler, preload=""):
            assert initial_bytes() == 16 * MIB

    on_a_worker(test)


def test_worker_that_joins_and_cannot_have_the_pool_ends_and_says_why() -> None:
    async def test(client: Client, worker: Worker) -> None:
        with pytest.raises(ConfigurationError):
            await client.register_plugin(UvmPlugin(initial_pool_size="1PiB"))
        assert worker.status.name == "running"  # the client knows
        with cluster.logged() as lines:
            joins = await cluster.worker(worker.scheduler, preload="")
            await joins.finished()
        assert joins.status.name == "closed"
        assert lines == [
            line for line in lines if "this worker ends" in line and "initial_pool_size" in line
        ]
        assert len(lines) == 1

    on_a_worker(test)


def test_plugin_registered_again_with_the_same_settings_keeps_the_pool() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(prefetch="always"))
        first = rmm_uvm.current_installation()
        buffer = rmm.DeviceBuffer(size=MIB, mr=first.managed_mr)
        await client.register_plugin(UvmPlugin(prefetch="always"))
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is first
        assert first.devices[0].current
        del buffer

    on_a_worker(test)


def test_plugin_with_other_settings_makes_the_pool_again_when_nothing_is_alive() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        await client.register_plugin(UvmPlugin(initial_pool_size="8MiB"))
        assert initial_bytes() == 8 * MIB

    on_a_worker(test)


def test_plugin_with_other_settings_is_refused_while_memory_is_alive() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        first = rmm_uvm.current_installation()
        buffer = rmm.DeviceBuffer(size=MIB, mr=first.managed_mr)
        with pytest.raises(ConfigurationError) as caught:
            await client.register_plugin(UvmPlugin(initial_pool_size="8MiB"))
        assert str(caught.value).startswith(
            "the managed pool cannot be replaced by one with other settings (initial_pool_size is "
            "16.00 MiB, not 8.00 MiB): 1.00 MiB are alive in it"
        )
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is first
        assert first.devices[0].current
        del buffer

    on_a_worker(test)


def test_plugin_whose_chunks_do_not_fit_leaves_the_pool_as_it_was() -> None:
    async def test(client: Client, worker: Worker) -> None:
        first = rmm_uvm.current_installation()
        with pytest.raises(ConfigurationError, match=r"chunk-size is 4\.00 MiB: an IPC pool of"):
            await client.register_plugin(
                UvmPlugin(initial_pool_size="8MiB", comm={"chunk_size": "4MiB"})
            )
        assert rmm_uvm.current_installation() is first
        assert first.devices[0].current

    on_a_worker(test, "--initial-pool-size", "16MiB", preload=True)


def test_plugin_that_sets_transfers_alone_is_heard() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(comm={"chunk_size": "1MiB", "wait_seconds": 3}))
        assert current_staging().chunk_bytes == MIB
        assert current_staging().sending.wait_seconds == 3
        kept = rmm_uvm.current_installation()
        buffer = rmm.DeviceBuffer(size=MIB, mr=kept.managed_mr)
        for size, reason in (("4MiB", "chunk-size is 4.00 MiB"), ("512KiB", "comm.chunk_size is")):
            with pytest.raises(ConfigurationError, match=re.escape(reason)):
                await client.register_plugin(UvmPlugin(comm={"chunk_size": size}))
        assert rmm_uvm.current_installation() is kept
        assert dask.config.get("rmm-uvm.comm.chunk-size") == MIB
        del buffer

    on_a_worker(test, preload=True)


def test_pool_that_cannot_be_installed_is_an_error_at_the_client() -> None:
    async def test(client: Client, worker: Worker) -> None:
        with pytest.raises(ConfigurationError, match=r"initial_pool_size is 1\.00 PiB, over"):
            await client.register_plugin(UvmPlugin(initial_pool_size="1PiB"))
        assert rmm_uvm.current_installation() is None

    on_a_worker(test)


def test_preload_and_plugin_together_install_once_and_say_so() -> None:
    async def test(client: Client, worker: Worker) -> None:
        first = rmm_uvm.current_installation()
        with cluster.logged() as lines:
            await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
            await client.register_plugin(UvmPlugin())
        assert rmm_uvm.current_installation() is first
        assert len(lines) == 2
        assert all("the plugin finds a managed pool with its settings" in line for line in lines)
        await client.unregister_worker_plugin("rmm-uvm")
        await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is first

    on_a_worker(test, "--initial-pool-size", "16MiB", preload=True)


def test_plugin_adds_to_what_the_preload_was_told() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(prefetch="always"))
        assert initial_bytes() == 16 * MIB
        assert rmm_uvm.current_installation().managed_mr.prefetch == "always"

    on_a_worker(test, "--initial-pool-size", "16MiB", preload=True)


def test_pool_that_a_user_installed_meanwhile_stays() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        users = rmm_uvm.reinitialize("8MiB")
        with cluster.logged() as lines:
            await client.unregister_worker_plugin("rmm-uvm")
            await asyncio.sleep(0)
        assert rmm_uvm.current_installation() is users
        assert "what is there stays" in lines[-1]
        rmm_uvm.restore()

    on_a_worker(test)


def test_pool_that_a_user_installed_on_another_device_stays_and_the_workers_is_kept() -> None:
    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        workers = rmm_uvm.current_installation()
        users = rmm_uvm.reinitialize("8MiB", devices=1)
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        await asyncio.sleep(0)
        assert workers.state == "on"
        await client.unregister_worker_plugin("rmm-uvm")
        await asyncio.sleep(0)
        assert (workers.state, users.state) == ("released", "on")
        assert "rmm-uvm" not in worker.metrics
        rmm_uvm.restore()

    on_a_worker(test)


# --- the plugin itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"colour": "red"}, "no setting 'colour'"), ({"prefetch": "maybe"}, "prefetch='maybe'")],
)
def test_plugin_with_settings_that_cannot_be_is_refused_where_it_is_made(
    settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        UvmPlugin(**settings)


def test_plugin_is_the_same_after_pickling() -> None:
    plugin = UvmPlugin(maximum_pool_size="1GiB", monitor={"interval-seconds": 1})
    assert pickle.loads(cloudpickle.dumps(plugin)).keywords == {
        "maximum_pool_size": 1 << 30,
        "monitor": {"interval_seconds": 1},
    }


def test_plugin_whose_pool_cannot_be_had_leaves_nothing_of_the_one_that_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(client: Client, worker: Worker) -> None:
        assert "rmm-uvm" in worker.metrics

        def fail(**_: Any) -> None:
            rmm_uvm.restore()  # as it does before it makes another
            raise MemoryError("no room for the first slab")

        with monkeypatch.context() as patched:
            patched.setattr("rmm_uvm.pool.install.reinitialize", fail)
            with pytest.raises(MemoryError, match="no room"):
                await client.register_plugin(UvmPlugin(initial_pool_size="8MiB"))
        assert rmm_uvm.current_installation() is None
        assert "rmm-uvm" not in worker.metrics
        # And another can be had.
        await client.register_plugin(UvmPlugin(initial_pool_size="16MiB"))
        assert initial_bytes() == 16 * MIB
        assert "rmm-uvm" in worker.metrics

    on_a_worker(test, preload=True)


# --- the off switch ----------------------------------------------------------------------------


@pytest.mark.parametrize("preload", [False, True])
def test_worker_starts_without_the_pool_where_the_switch_is_off(
    preload: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM", "off")
    before = rmm.mr.get_per_device_resource(0)

    async def test(client: Client, worker: Worker) -> None:
        await client.register_plugin(UvmPlugin(maximum_pool_size="32MiB"))
        assert rmm.mr.get_per_device_resource(0) is before
        assert await client.submit(int, 7) == 7
        await client.unregister_worker_plugin("rmm-uvm")
        assert worker.status.name == "running"

    with cluster.logged() as lines:
        on_a_worker(test, preload=preload)
    off = "installs nothing: switched off by RMM_UVM=off"
    holders = ["the preload"] * preload + ["the plugin"]
    assert lines == [f"rmm_uvm: {holder} {off}" for holder in holders]


def test_worker_refuses_a_switch_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM", "no")

    async def test(client: Client, _worker: Worker) -> None:
        with pytest.raises(ConfigurationError, match="RMM_UVM is 'no'"):
            await client.register_plugin(UvmPlugin())

    on_a_worker(test)
