# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
r"""A preload for Dask workers: every worker installs the managed pool when it starts.

On the command line, each setting as a flag behind it::

    dask cuda worker SCHEDULER --device-memory-limit 0 \
        --preload rmm_uvm.dask --maximum-pool-size 64GiB --prefetch always

or in Dask's configuration, with the settings in the section ``rmm-uvm``::

    distributed:
      worker:
        preload: [rmm_uvm.dask]

``dask scheduler --preload rmm_uvm.dask`` adds a page to the scheduler's dashboard, and needs
neither RMM nor a GPU.

A worker whose pool cannot be installed does not start, and says why in one line. See
docs/use/dask.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import click

from rmm_uvm.dask.flags import FLAGS, SettingType, without_settings
from rmm_uvm.dask.installed import workers_pool
from rmm_uvm.errors import ConfigurationError

__all__ = ["dask_setup", "dask_teardown"]

EVENT_TOPIC = "rmm-uvm-start"
REFUSED = "refused"  # the action of the event that says why a worker does not start

_logger = logging.getLogger("distributed.worker.rmm_uvm")
_EVENT_SECONDS = 5.0  # the scheduler may be gone


class _SetupCommand(click.Command):
    """The command that Dask parses a worker's flags with.

    Dask logs what a preload raises and starts the worker all the same. So a flag that cannot be
    read, which happens before our function is called, is handed to the function.
    """

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        try:
            return super().make_context(info_name, list(args), *more, **extra)
        except click.UsageError as error:
            context = super().make_context(info_name, [], *more, **extra)
            context.params["usage_error"] = error.format_message()
            return context


def _with_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, flag in reversed(FLAGS.items()):
        function = click.option(flag, name, type=SettingType(name))(function)
    return function


# dask-cuda has a preload of its own on each worker, and Dask gives all preloads the same arguments.
@click.option("--create-cuda-context/--no-create-cuda-context", default=False, hidden=True)
@_with_flags
@click.command(cls=_SetupCommand, add_help_option=False)
async def dask_setup(
    dask_object: Any,
    *,
    create_cuda_context: bool,
    usage_error: str = "",
    **flags: tuple[Any] | None,
) -> None:
    """Install the pool on a worker, or a page on the scheduler; Dask calls this at the start.

    Parameters
    ----------
    dask_object : distributed.Worker or distributed.Scheduler
    create_cuda_context : bool
        dask-cuda's own; not for us.
    usage_error : str
        What is wrong with the flags; empty if nothing is.
    **flags
        Settings, each in a tuple; None for a flag that was not given.
    """
    del create_cuda_context
    keywords = {name: value[0] for name, value in flags.items() if value is not None}
    kind = _kind(dask_object)
    if kind == "scheduler":
        if keywords or usage_error:
            _logger.warning("rmm_uvm: flags behind --preload are for workers; a scheduler has none")
        _show_page(dask_object)
        return
    if kind != "worker":
        raise ConfigurationError(
            f"rmm_uvm.dask is a preload for workers and schedulers, and this is a {kind}: preload "
            "it there (--preload, distributed.worker.preload)"
        )
    _give_others_their_arguments(dask_object)
    try:
        _install(dask_object, keywords, usage_error)
    except Exception as error:
        await _refuse_start(dask_object, error)


def _install(worker: Any, keywords: dict[str, Any], usage_error: str) -> None:
    from rmm_uvm.dask.worker.pool import WorkerPool

    if usage_error:
        raise ConfigurationError(usage_error)
    WorkerPool.of(worker).hold("the preload", keywords, is_base=True)
    _ask_for_no_context(worker)


def dask_teardown(dask_object: Any) -> None:
    """Put back what was there; Dask calls this when a worker or scheduler ends."""
    kind = _kind(dask_object)
    if kind == "worker":
        from rmm_uvm.dask.worker.pool import WorkerPool

        WorkerPool.of(dask_object).let_go("the preload")
    elif kind == "scheduler":
        from rmm_uvm.dask import dashboard

        dashboard.detach(dask_object)


def _kind(dask_object: Any) -> str:
    """Return what Dask calls us for: worker, scheduler, nanny, client, or another type's name."""
    import distributed

    kinds = {
        "worker": distributed.Worker,
        "scheduler": distributed.Scheduler,
        "nanny": distributed.Nanny,
        "client": distributed.Client,
    }
    for name, kind in kinds.items():
        if isinstance(dask_object, kind):
            return name
    return type(dask_object).__name__


def _show_page(scheduler: Any) -> None:
    from rmm_uvm.dask import dashboard

    page = dashboard.attach(scheduler)
    if not page:
        logging.getLogger("distributed.scheduler.rmm_uvm").info(
            "rmm_uvm: no page on the dashboard: %s", page.reason
        )


def _give_others_their_arguments(worker: Any) -> None:
    """Take our flags out of what other preloads of a worker are about to be given.

    Dask hands the whole command line to each of them, and dask-cuda's refuses what it does not
    know. Ours runs first, and `Preload.argv` is a plain attribute that is read when its turn comes.
    Where each has a list of its own, these are none of ours.
    """
    commands = [getattr(preload.module, "dask_setup", None) for preload in worker.preloads]
    ours = [
        list(preload.argv)
        for preload, command in zip(worker.preloads, commands, strict=True)
        if command is dask_setup
    ]
    for preload, command in zip(worker.preloads, commands, strict=True):
        is_other = command is not dask_setup and isinstance(command, click.Command)
        if is_other and preload.argv in ours:
            preload.argv = without_settings(preload.argv)


def _ask_for_no_context(worker: Any) -> None:
    """Keep dask-cuda's preload from making a CUDA context where the pool has made one.

    It is on the right device, and dask-cuda would warn of it as of somebody's mistake.
    """
    found = workers_pool()
    if found is None or found[1].info.simulated:
        return
    for preload in worker.preloads:
        if preload.name == "dask_cuda.initialize":
            preload.argv = [word for word in preload.argv if word != "--create-cuda-context"]


async def _refuse_start(worker: Any, error: Exception) -> None:
    """Keep a worker from starting, and tell why: in its log, and to whoever started the cluster.

    Dask logs what a preload raises and goes on, so the worker would run without the pool. What a
    plugin raises that a worker is given at its start does end it, and its nanny with it, which then
    does not start it again. `_pending_plugins` are these; the others need not be set up any more.
    """
    from rmm_uvm.dask.worker.plugin import RefusedStart

    line = " ".join(str(error).split()) or type(error).__name__
    _logger.error("rmm_uvm: this worker does not start: %s", line)
    worker._pending_plugins = (RefusedStart(error),)
    event = {"action": REFUSED, "worker": str(worker.name), "reason": line}
    try:
        await asyncio.wait_for(
            worker.scheduler.log_event(topic=EVENT_TOPIC, msg=event), _EVENT_SECONDS
        )
    except (OSError, TimeoutError):
        _logger.debug("rmm_uvm: the scheduler could not be told", exc_info=True)
