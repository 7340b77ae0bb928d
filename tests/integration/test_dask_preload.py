# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The preload on Dask's own workers and scheduler, in this process, on a simulated device."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import dask
import pytest
import rmm
from distributed import Scheduler, Worker, WorkerPlugin

import rmm_uvm
from rmm_uvm.dask import UvmSchedulerPlugin
from rmm_uvm.dask.cluster.local import RefusedStarts
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


@pytest.fixture
def other_preload(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A preload with a flag of its own, as dask-cuda's is."""
    module = ModuleType("other_preload")
    module.seen = []  # type: ignore[attr-defined]

    @click.command()
    @click.option("--create-cuda-context/--no-create-cuda-context", default=False)
    def dask_setup(worker: Worker, *, create_cuda_context: bool) -> None:
        module.seen.append(create_cuda_context)  # type: ignore[attr-defined]

    module.dask_setup = dask_setup  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "other_preload", module)
    return module


def installed_sizes() -> Any:
    installation = rmm_uvm.current_installation()
    assert installation is not None
    return installation.devices[0].sizes


def why_not_started(error: BaseException) -> str:
    """Return the reason at the bottom of a failure's causes."""
    while error.__cause__ is not None:
        error = error.__cause__
    assert isinstance(error, ConfigurationError)
    return str(error)


# --- installing --------------------------------------------------------------------------------


def test_preload_installs_what_flags_and_configuration_say_and_restores_it() -> None:
    before = rmm.mr.get_per_device_resource(0)

    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler, "--initial-pool-size", "16MiB", "--prefetch=always"):
            assert installed_sizes().initial_bytes == 16 * MIB
            assert installed_sizes().maximum_bytes == 32 * MIB
            assert rmm_uvm.current_installation().managed_mr.prefetch == "always"

    cluster.run(test, **{"rmm-uvm.maximum-pool-size": "32MiB", "rmm-uvm.prefetch": "never"})
    assert rmm_uvm.current_installation() is None
    assert rmm.mr.get_per_device_resource(0) is before


def test_preload_without_any_setting_installs_the_default_pool() -> None:
    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler):
            assert installed_sizes().ipc_bytes == 8 * MIB
            assert rmm_uvm.current_installation().monitor.running
            (told,) = [each.metrics["rmm-uvm"] for each in scheduler.workers.values()]
            assert told["simulated"]

    cluster.run(test, **{"rmm-uvm": None})


def test_preload_that_is_named_twice_installs_once_and_says_so() -> None:
    async def test(scheduler: Scheduler) -> None:
        with cluster.logged() as lines:
            async with Worker(
                scheduler.address,
                host="127.0.0.1",
                dashboard=False,
                preload=["rmm_uvm.dask", "rmm_uvm.dask"],
            ):
                assert rmm_uvm.current_installation() is not None
        assert sum("managed pool on simulated device" in line for line in lines) == 1
        assert sum("finds a managed pool with its settings" in line for line in lines) == 1

    cluster.run(test)
    assert rmm_uvm.current_installation() is None


def test_two_workers_of_a_process_share_the_pool_and_the_last_puts_it_back() -> None:
    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler):
            shared = rmm_uvm.current_installation()
            async with cluster.worker(scheduler):
                assert rmm_uvm.current_installation() is shared
            assert rmm_uvm.current_installation() is shared
        assert rmm_uvm.current_installation() is None

    cluster.run(test)


def test_preload_gives_the_workers_share_of_the_host_to_the_pool() -> None:
    async def test(scheduler: Scheduler) -> None:
        from distributed.system import MEMORY_LIMIT

        async with cluster.worker(scheduler, memory_limit=MEMORY_LIMIT // 4):
            assert "shared by 4 workers" in installed_sizes().maximum_reason
        async with cluster.worker(
            scheduler, "--workers-per-host", "2", memory_limit=MEMORY_LIMIT // 4
        ):
            assert "shared by 2 workers" in installed_sizes().maximum_reason

    cluster.run(test)


def test_flags_of_communication_reach_what_reads_dasks_configuration() -> None:
    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler, "--comm", "{chunk-size: 1MiB, wait-seconds: 3}"):
            assert dask.config.get("rmm-uvm.comm.chunk-size") == MIB
            assert dask.config.get("rmm-uvm.comm.wait-seconds") == 3

    cluster.run(test)
    assert dask.config.get("rmm-uvm.comm.chunk-size") is None


# --- beside other preloads ---------------------------------------------------------------------


def test_other_preload_behind_ours_gets_its_own_arguments(other_preload: Any) -> None:
    async def test(scheduler: Scheduler) -> None:
        async with Worker(
            scheduler.address,
            host="127.0.0.1",
            dashboard=False,
            preload=["rmm_uvm.dask", "other_preload"],
            preload_argv=["--initial-pool-size", "16MiB", "--create-cuda-context"],
        ):
            assert installed_sizes().initial_bytes == 16 * MIB

    cluster.run(test)
    assert other_preload.seen == [True]


def test_other_preload_with_a_list_of_its_own_keeps_it(other_preload: Any) -> None:
    async def test(scheduler: Scheduler) -> None:
        worker = Worker(
            scheduler.address,
            host="127.0.0.1",
            dashboard=False,
            preload=["rmm_uvm.dask", "other_preload"],
            preload_argv=[["--prefetch", "never"], ["--prefetch", "theirs"]],
        )
        theirs = worker.preloads[1]
        taken = []
        theirs.start = lambda: taken.append(list(theirs.argv)) or asyncio.sleep(0)
        async with worker:
            assert rmm_uvm.current_installation().managed_mr.prefetch == "never"
        assert taken == [["--prefetch", "theirs"]]

    cluster.run(test)


@pytest.mark.parametrize(
    ("simulated", "expected"), [(True, ["--create-cuda-context"]), (False, [])]
)
def test_dask_cuda_makes_no_context_where_the_pool_has_made_one(
    simulated: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmm_uvm.dask import preload

    facts = [(0, simulated), (1, not simulated)]  # the worker's device is the first
    handles = [
        SimpleNamespace(devices=[SimpleNamespace(info=SimpleNamespace(device_id=n, simulated=is_))])
        for n, is_ in facts
    ]
    monkeypatch.setattr("rmm_uvm.pool.install._installations", tuple(handles))
    dask_cudas = SimpleNamespace(name="dask_cuda.initialize", argv=["--create-cuda-context"])
    other = SimpleNamespace(name="other", argv=["--create-cuda-context"])
    preload._ask_for_no_context(SimpleNamespace(preloads=[dask_cudas, other]))
    monkeypatch.undo()
    assert dask_cudas.argv == expected
    assert other.argv == ["--create-cuda-context"]


def test_other_preload_without_ours_refuses_our_arguments(other_preload: Any) -> None:
    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(
            scheduler, "--initial-pool-size", "16MiB", preload="other_preload"
        ):
            pass

    cluster.run(test)
    assert other_preload.seen == []


# --- a worker that does not start --------------------------------------------------------------


class MustNotRun(WorkerPlugin):
    ran = False

    def setup(self, worker: Worker) -> None:
        del worker
        type(self).ran = True


@pytest.mark.parametrize(
    ("arguments", "configuration", "reason"),
    [
        (["--initial-pool-size", "1PiB"], {}, "initial_pool_size is 1.00 PiB, over the maximum"),
        (["--pool-size", "1GiB"], {}, "No such option '--pool-size'"),
        ([], {"rmm-uvm.prefetch": "maybe"}, "prefetch='maybe'"),
        ([], {"rmm-uvm.colour": "red"}, "no setting 'colour'"),
        (
            ["--comm", "{chunk-size: 4MiB}"],
            {},
            "rmm-uvm.comm.chunk-size is 4.00 MiB: an IPC pool of",
        ),
        ([], {"distributed-ucxx.rmm.pool-size": "1GB"}, "distributed-ucxx.rmm.pool-size is 1GB"),
        ([], {"distributed-ucxx.multi-buffer": True}, "distributed-ucxx.multi-buffer is on"),
    ],
)
def test_worker_whose_pool_cannot_be_installed_does_not_start_and_tells_why(
    arguments: list[str], configuration: dict[str, Any], reason: str
) -> None:
    refused = RefusedStarts()

    async def test(scheduler: Scheduler) -> None:
        scheduler.add_plugin(refused)
        worker = cluster.worker(scheduler, *arguments, plugins=[MustNotRun()])
        with pytest.raises(RuntimeError, match="Worker failed to start") as caught:
            await worker
        assert reason in why_not_started(caught.value)
        assert worker.status.name == "failed"
        assert not scheduler.workers

    with cluster.logged() as lines:
        cluster.run(test, **configuration)
    assert len(lines) == 1
    assert "this worker does not start" in lines[0]
    assert reason in lines[0]
    assert len(refused.reasons) == 1
    assert reason in refused.reasons[0]
    assert not MustNotRun.ran
    assert rmm_uvm.current_installation() is None


def test_worker_that_fails_to_start_leaves_anothers_pool_alone() -> None:
    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler):
            there = rmm_uvm.current_installation()
            with pytest.raises(RuntimeError):
                await cluster.worker(scheduler, "--initial-pool-size", "1PiB")
            assert rmm_uvm.current_installation() is there
            assert there.devices[0].current

    cluster.run(test)


class RMMSetup(WorkerPlugin):
    """As dask-cuda's, which holds its options so."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update({"initial_pool_size": None, "managed_memory": False, **options})


RMMSetup.__module__ = "dask_cuda.plugins"


def test_worker_with_dask_cudas_memory_options_does_not_start() -> None:
    from dask_cuda.plugins import RMMSetup as theirs  # noqa: N813 - told from ours

    assert theirs.__qualname__ == RMMSetup.__qualname__

    async def test(scheduler: Scheduler) -> None:
        plugins = [RMMSetup(managed_memory=True, initial_pool_size="1GB")]
        with pytest.raises(RuntimeError) as caught:
            await cluster.worker(scheduler, plugins=plugins)
        assert why_not_started(caught.value).startswith("--rmm-pool-size, --rmm-managed-memory of")
        async with cluster.worker(scheduler, plugins=[RMMSetup()]):
            assert rmm_uvm.current_installation() is not None

    cluster.run(test)


def test_remarks_are_logged_and_the_worker_starts() -> None:
    class Limited(dict):  # type: ignore[type-arg]
        n = 1 << 30

    class DeviceHostFile(dict):  # type: ignore[type-arg]
        device_buffer = Limited()

    async def test(scheduler: Scheduler) -> None:
        async with cluster.worker(scheduler, data=DeviceHostFile()):
            assert rmm_uvm.current_installation() is not None

    with cluster.logged() as lines:
        cluster.run(test)
    assert sum("set device_memory_limit=0" in line for line in lines) == 1


# --- other objects of Dask ---------------------------------------------------------------------


def test_preload_on_a_scheduler_adds_the_page_and_installs_no_pool() -> None:
    async def test() -> None:
        async with Scheduler(
            host="127.0.0.1", port=0, dashboard=False, preload=["rmm_uvm.dask"]
        ) as scheduler:
            assert scheduler.status.name == "running"
            assert rmm_uvm.current_installation() is None
            assert isinstance(scheduler.plugins["rmm-uvm"], UvmSchedulerPlugin)

    asyncio.run(test())


def test_preload_on_something_else_is_refused_in_one_line() -> None:
    from rmm_uvm.dask.preload import dask_setup

    with pytest.raises(ConfigurationError, match="this is a NoneType: preload it there"):
        asyncio.run(dask_setup.callback(None, create_cuda_context=False))


@pytest.mark.parametrize(("arguments", "said"), [(["--prefetch", "never"], 1), ([], 0)])
def test_flags_of_workers_on_a_scheduler_are_said_to_be_of_no_use(
    arguments: list[str], said: int
) -> None:
    async def test() -> None:
        async with Scheduler(
            host="127.0.0.1",
            port=0,
            dashboard=False,
            preload=["rmm_uvm.dask"],
            preload_argv=arguments,
        ):
            pass

    with cluster.logged() as lines:
        asyncio.run(test())
    assert sum("flags behind --preload are for workers" in line for line in lines) == said
