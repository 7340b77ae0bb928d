# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The managed pool of one worker: made once, kept, replaced, put back.

A preload and any number of plugins may ask for it, one after the other. The worker holds this
object among its extensions, so that all of them find the same one. Everything here runs in the
worker's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import inspect
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

from rmm_uvm.dask import defaults
from rmm_uvm.dask.comm.settings import share_pool
from rmm_uvm.dask.installed import WORKERS_DEVICE, workers_pool
from rmm_uvm.dask.settings import WorkerSettings, settings_of
from rmm_uvm.dask.worker import findings, host_pause, logged_errors, telemetry
from rmm_uvm.dask.worker.host_share import HostShare, workers_on_host
from rmm_uvm.dask.worker.refusals import count_visible_devices, facts_of, refusals, remarks
from rmm_uvm.errors import ConfigurationError, UvmError
from rmm_uvm.support.kinds import Size
from rmm_uvm.support.off_switch import OFF, is_off
from rmm_uvm.support.settings import SETTINGS
from rmm_uvm.support.units import format_bytes

__all__ = ["EXTENSION", "WorkerPool", "pool_line", "with_guess"]


def pool_line(device: Any, prefetch: str, share: HostShare) -> str:
    """Return the line about a pool that was made.

    Parameters
    ----------
    device : rmm_uvm.pool.installation.DeviceInstallation
    prefetch : str
        As it was asked for.
    share : HostShare
        Of the host's memory, which its maximum counts.
    """
    sizes = device.sizes
    parts = [
        f"managed pool on {device.info.name}: {format_bytes(sizes.initial_bytes)}, at most "
        f"{format_bytes(sizes.maximum_bytes)} ({sizes.maximum_reason})",
        *_budget_words(device),
        f"IPC pool {format_bytes(sizes.ipc_bytes) if sizes.ipc_bytes else 'off'}",
        f"prefetch {prefetch}",
    ]
    if share.guess and _counts(share, sizes.maximum_reason):
        parts.append(share.guess)
    return "; ".join(parts)


def _budget_words(device: Any) -> list[str]:
    budget = device.budget
    if budget is None:
        return []
    size = format_bytes(device.managed_mr.budget_bytes)
    words = [f"budget {size}{' (auto)' if budget.follows else ''}", f"eviction {budget.policy}"]
    if budget.neighbors is not None:
        used = device.managed_mr.managed_mr.residency.neighbors
        words.append(f"neighbours {', '.join(map(str, used)) or 'none'}")
    return words


@contextlib.contextmanager
def with_guess(share: HostShare) -> Iterator[None]:
    """Have an error about a share of the host's memory say how that was told."""
    try:
        yield
    except ConfigurationError as error:
        if not share.guess or not _counts(share, str(error)):
            raise
        raise ConfigurationError(f"{error}; {share.guess}") from error


def _counts(share: HostShare, text: str) -> bool:
    """Return whether a reason or an error of `rmm_uvm.pool.sizing` is about the share."""
    return f"shared by {share.workers} workers" in text or f"of {share.workers} workers" in text


EXTENSION = "rmm-uvm"
_PARTS = (
    host_pause,
    logged_errors,
    telemetry,
    findings,
)  # what a worker with a pool gets beside it

# Below Dask's own, so that its lines are where those of the worker are: on the terminal, and in
# Client.get_worker_logs().
_logger = logging.getLogger("distributed.worker.rmm_uvm")


class WorkerPool:
    """Makes the pool of one worker, and puts back what was there when nobody asks for it any more.

    Parameters
    ----------
    worker : distributed.Worker

    Notes
    -----
    Not thread-safe: for the worker's event loop alone.
    """

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._holders: set[str] = set()
        self._leaving: set[str] = set()  # let go in this turn of the event loop
        self._base: WorkerSettings | None = None  # what the preload was told
        self._installation: Any = None  # Installation; RMM may be missing here
        self._attached: list[Any] = []
        self._comm_configuration: Any = None

    @classmethod
    def of(cls, worker: Any) -> WorkerPool:
        """Return the one of a worker; made when it is first asked for."""
        found = worker.extensions.get(EXTENSION)
        if found is None:
            found = worker.extensions[EXTENSION] = cls(worker)
        pool: WorkerPool = found
        return pool

    def hold(self, holder: str, keywords: dict[str, Any], *, is_base: bool = False) -> None:
        """Have the pool installed with these settings; nothing where ``RMM_UVM=off``.

        Parameters
        ----------
        holder : str
            Who asks; the pool stays until `let_go` was called for each.
        keywords : dict of str to object
            Settings that come before those of the preload, and of Dask's configuration.
        is_base : bool
            The settings are this worker's own (a preload's), to which others add.

        Raises
        ------
        ConfigurationError
            A setting cannot be used, fights one of Dask's, or the pool that is there has other
            settings and cannot be replaced. Nothing was changed.
        UvmError, MemoryError, ImportError
            As `rmm_uvm.reinitialize`. A pool that was there and had to go first is gone, with what
            belongs to it.
        """
        if holder in self._leaving:  # what it has stays if what it asks for now is refused
            self._leaving.discard(holder)
            self._holders.add(holder)
        importlib.import_module("rmm_uvm._lib")  # first: says in one line what is wrong with RMM
        settings = self._settings(keywords, is_base=is_base)
        if is_off():
            _logger.info("rmm_uvm: %s installs nothing: %s", holder, OFF)
            return
        facts = facts_of(self._worker, settings)
        if refused := refusals(facts):
            raise ConfigurationError("; ".join(refused))
        share = self._host_share(settings)
        arguments = settings.arguments(share.workers)
        if self._keeps(arguments, settings):
            _logger.info("rmm_uvm: %s finds a managed pool with its settings, and keeps it", holder)
        else:
            for line in remarks(facts):
                _logger.warning("rmm_uvm: %s", line)
            self._install(arguments, settings, share, holder)
        self._holders.add(holder)
        self._installation.holders.add(self._worker.id)
        if is_base:
            self._base = settings

    def let_go(self, holder: str) -> None:
        """Say that one of those who asked does not need the pool any more.

        The last one has it put back: at once where the worker ends, else in the next turn of the
        event loop. Dask takes a plugin down before it sets up another of the same name, and a pool
        that both want is not to be torn down between.
        """
        if holder not in self._holders:
            return
        self._holders.discard(holder)
        if self._worker.status.name in ("closing", "closed", "failed", "init"):
            self._put_back()
        else:
            self._leaving.add(holder)
            asyncio.get_running_loop().call_soon(self._put_back)

    def _settings(self, keywords: dict[str, Any], *, is_base: bool) -> WorkerSettings:
        if is_base or self._base is None:
            return settings_of(defaults.section(), keywords)
        return self._base.changed(keywords)

    def _host_share(self, settings: WorkerSettings) -> HostShare:
        from distributed.system import MEMORY_LIMIT

        return workers_on_host(
            asked=settings.workers_per_host,
            memory_limit_bytes=self._worker.memory_manager.memory_limit,
            host_bytes=MEMORY_LIMIT,
            visible_devices=count_visible_devices(os.environ.get("CUDA_VISIBLE_DEVICES")),
        )

    def _keeps(self, arguments: dict[str, Any], settings: WorkerSettings) -> bool:
        """Tell whether the pool that is there was made with these settings; then it will do."""
        current = _installed()
        if current is None or _differences(current.arguments, arguments, settings):
            return False
        self._attach()
        self._installation = current  # of the preload, or another worker of this process
        return True

    def _install(
        self, arguments: dict[str, Any], settings: WorkerSettings, share: HostShare, holder: str
    ) -> None:
        from rmm_uvm.pool.install import reinitialize, restore_devices

        current = _installed()
        holders: set[str] = set()
        if current is not None:
            differences = _differences(current.arguments, arguments, settings)
            # Before the old pool goes: whoever is refused keeps it.
            _check_chunks(_ipc_bytes_of(arguments), settings)
            _refuse_if_alive(current, differences)
            _logger.info("rmm_uvm: %s has the managed pool made again: %s", holder, differences)
            holders = current.holders  # other workers of this process
            del current  # or it would keep the old pool
        try:
            with with_guess(share):
                made = reinitialize(**arguments)
        except BaseException:
            self._forget_lost_pool()
            raise
        try:
            _check_chunks(made.devices[0].sizes.ipc_bytes, settings)
        except ConfigurationError:  # now, and not at the first result that is exchanged
            restore_devices([WORKERS_DEVICE])
            raise
        made.holders = holders
        self._attach()
        self._installation = made
        self._configure_comm(settings)
        _logger.info("rmm_uvm: %s", pool_line(made.devices[0], settings.prefetch, share))

    def _forget_lost_pool(self) -> None:
        """Take back what belongs to a pool that went before another could be made."""
        if self._installation is not None and self._installation.state != "on":
            self._installation = None
            self._detach()

    def _attach(self) -> None:
        """Add what belongs to a worker with a pool; once."""
        if self._installation is None:
            from rmm_uvm.integrations import prometheus

            prometheus.register()  # says that it is not available where the client is missing
            for part in _PARTS:
                part.attach(self._worker)

    def _detach(self) -> None:
        from rmm_uvm.integrations import prometheus

        for part in reversed(_PARTS):
            part.detach(self._worker)
        prometheus.unregister()
        if self._comm_configuration is not None:
            self._comm_configuration.__exit__(None, None, None)
            self._comm_configuration = None

    def _configure_comm(self, settings: WorkerSettings) -> None:
        """Let the comm backend, which reads Dask's configuration, see what flags said."""
        import dask.config

        if self._comm_configuration is not None:
            self._comm_configuration.__exit__(None, None, None)
        comm = {name.replace("_", "-"): value for name, value in settings.comm.items()}
        self._comm_configuration = dask.config.set(
            {defaults.SECTION: {**(defaults.section() or {}), "comm": comm}}
        )

    def _put_back(self) -> None:
        self._leaving.clear()
        if self._holders or self._installation is None:
            return
        from rmm_uvm.pool.install import restore_devices

        installation, self._installation = self._installation, None
        if installation.state != "on":
            _logger.info("rmm_uvm: the managed pool was replaced meanwhile; what is there stays")
        else:
            installation.holders.discard(self._worker.id)
            if not installation.holders:  # else other workers of this process have it
                try:
                    restore_devices(each.info.device_id for each in installation.devices)
                except UvmError as error:
                    _logger.warning("rmm_uvm: the managed pool stays: %s", error)
        self._detach()  # last: a monitor that stops looks once more, and may find something


def _installed() -> Any:
    """Return the installation on the worker's device, or None."""
    found = workers_pool()
    return found[0] if found and found[1].info.device_id == WORKERS_DEVICE else None


def _check_chunks(ipc_pool_bytes: int, settings: WorkerSettings) -> None:
    """Refuse a size of chunks that the IPC pool cannot be divided into."""
    if ipc_pool_bytes:
        share_pool(ipc_pool_bytes, settings.comm["chunk_size"])


def _ipc_bytes_of(arguments: Mapping[str, Any]) -> int:
    """Return the size of the IPC pool that `rmm_uvm.reinitialize` would make."""
    from rmm_uvm.drivers import choose_driver
    from rmm_uvm.pool.sizing import ipc_pool_bytes

    _, total_bytes = choose_driver(0, arguments["driver"]).memory()
    return ipc_pool_bytes(arguments["ipc_pool_size"], total_bytes)


def _refuse_if_alive(installation: Any, differences: str) -> None:
    gc.collect()  # what only garbage keeps alive is not alive
    alive_bytes = sum(each.managed_mr.get_allocated_bytes() for each in installation.devices)
    if alive_bytes:
        raise ConfigurationError(
            f"the managed pool cannot be replaced by one with other settings ({differences}): "
            f"{format_bytes(alive_bytes)} are alive in it; release the results and ask again, or "
            "restart the workers with client.restart()"
        )


def _differences(
    installed: Mapping[str, Any], arguments: dict[str, Any], settings: WorkerSettings
) -> str:
    """Return in words which settings of an installation are not those that are asked for."""
    from rmm_uvm.pool.install import reinitialize

    wanted = inspect.signature(reinitialize).bind(**arguments)
    wanted.apply_defaults()
    # Chunks are cut when the pool is first used, so other ones need another pool.
    comm = settings_of(defaults.section()).comm
    pairs = [(name, installed.get(name), value) for name, value in wanted.arguments.items()]
    pairs += [(f"comm.{name}", comm.get(name), value) for name, value in settings.comm.items()]
    return ", ".join(
        f"{name} is {_shown(name, is_)}, not {_shown(name, value)}"
        for name, is_, value in pairs
        if is_ != value
    )


def _shown(name: str, value: object) -> str:
    """Return an argument as people write it: sizes with their unit."""
    is_size = name in SETTINGS and isinstance(SETTINGS[name].kind, Size)
    return format_bytes(value) if is_size and isinstance(value, int) else repr(value)
