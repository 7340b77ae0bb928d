# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing the managed pool as RMM's resource, and putting back what was there.

Covers `reinitialize` and `restore`, which `rmm_uvm` exports. Does not cover building pools; see
`rmm_uvm.pool.build`.

Holds what is installed, for the whole process: a device is of the handle whose call made its pool,
and of no other. A later call takes from the handles the devices that it is for. What libraries were
wired to is of the process: made anew whenever a device comes or goes, as the last of these calls
asked.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging as logs
import os
import threading
import traceback
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import rmm
import rmm.rmm as rmm_module

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.mr import unobserved
from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import AvailabilityError, ConfigurationError, ReplacedResourceWarning
from rmm_uvm.integrations import Wiring, wire
from rmm_uvm.integrations.cudf import wire_prefetch
from rmm_uvm.integrations.current_device import wire_current_device
from rmm_uvm.integrations.seen.buffers import wire_buffers
from rmm_uvm.integrations.seen.cupy import wire_cupy
from rmm_uvm.integrations.seen.libcudf import wire_libcudf
from rmm_uvm.integrations.seen.numba import wire_numba_launches
from rmm_uvm.integrations.seen.xgboost import wire_xgboost_data
from rmm_uvm.pool.arguments import check_kind, drivers_of, make_monitor, ordinals_of
from rmm_uvm.pool.budget_warnings import open_neighbors_or_warn
from rmm_uvm.pool.build import budget_on, plan_for
from rmm_uvm.pool.device import install_one
from rmm_uvm.pool.device_installation import DeviceInstallation
from rmm_uvm.pool.install_warnings import Farewell, warn_about, warn_replaced
from rmm_uvm.pool.installation import Installation
from rmm_uvm.pool.sizing import PoolRequest, PoolSizes
from rmm_uvm.pool.slabs import trim_pools
from rmm_uvm.residency.budget import Budget
from rmm_uvm.residency.neighbors import HarvestLimit, Neighbors
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.process_lock import ProcessLock
from rmm_uvm.support.settings import LIBRARIES, CudfPrefetch, PrefetchMode, reads_settings
from rmm_uvm.support.user_line import warn_user

__all__ = [
    "current_installation",
    "earlier_pool_holds",
    "installations",
    "installed_devices",
    "reinitialize",
    "restore",
    "restore_devices",
]

_installations: tuple[Installation, ...] = ()  # with devices, in the order of the calls
_wirings: tuple[Wiring, ...] = ()  # for all of them; none only while nothing is wired
_going_in = 0  # the process in which pools are about to be put back
_left: Installation | None = None  # the last that the off switch left out
_earlier: weakref.WeakSet[ManagedResidency] = weakref.WeakSet()  # with memory that is alive
_noting = ProcessLock()  # of `_earlier`
# One call at a time changes what is installed; of each process, as a child of a fork has its own.
_changing: dict[int, threading.RLock] = {}
_logger = logs.getLogger("rmm_uvm")


def current_installation() -> Installation | None:
    """Return the handle of the last call of `reinitialize` that still has devices, or None."""
    found = _installations
    return found[-1] if found else None


def installations() -> tuple[Installation, ...]:
    """Return the handles that have devices, in the order of their calls."""
    return _installations


def installed_devices() -> tuple[DeviceInstallation, ...]:
    """Return what is installed on all devices; what the last call installed comes first."""
    return tuple(device for each in reversed(_installations) for device in each.devices)


def earlier_pool_holds(address: int) -> bool:
    """Whether memory at an address is of a pool that was installed once, and is not any more."""
    with _noting():
        earlier = tuple(_earlier)
    return any(each.holds(address) for each in earlier)


class _Turn:
    """The turn of a thread of ours: on it no signal handler raises between two lines."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise AvailabilityError("another thread is changing what is installed: call later")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _turn() -> AbstractContextManager[object]:
    """Return what waits for others that change what is installed.

    A thread of ours does not wait: who stops it waits for it, such as for a callback of a monitor.
    """
    lock = _changing.setdefault(os.getpid(), threading.RLock())
    return _Turn(lock) if isinstance(threading.current_thread(), OwnThread) else lock


def _finish(made: Installation, given: dict[str, Any]) -> None:
    made.arguments = given
    if _logger.isEnabledFor(logs.INFO):  # in a script nobody prints the handle
        _logger.info("%s", made.line())
    warn_about(made)  # last: warnings may be errors


@reads_settings(_finish)
def reinitialize(
    initial_pool_size: int | str | float | None = None,
    maximum_pool_size: int | str | float | None = None,
    devices: int | Sequence[int] = 0,
    logging: bool = False,  # noqa: FBT001, FBT002 - rmm.reinitialize's own signature
    log_file_name: str | None = None,
    *,
    prefetch: PrefetchMode = "auto",
    ipc_pool_size: int | str | float | None = None,
    device_budget: int | str | float | Budget | None = "auto",
    eviction: str | None = None,
    neighbors: Neighbors = None,
    harvest_limit: HarvestLimit = None,
    libraries: Iterable[str] = ("cupy",),
    cudf_prefetch: CudfPrefetch = "auto",
    driver: UvmDriver | str | None = None,
    monitor: bool | Mapping[str, Any] = True,
    host_sharers: int = 1,
    pool_allocator: bool = True,
    managed_memory: bool = True,
) -> Installation:
    """Install a managed-memory pool: data may then exceed the GPU.

    cuDF allocates from it at once, CuPy too, and PyTorch on request. Keywords that
    `rmm.reinitialize` has too mean the same. Hooks registered with
    `rmm.register_reinitialize_hook` are run.

    Parameters
    ----------
    initial_pool_size : int, str, float or None
        First slab of the pool, prefetched as far as device memory is free: bytes, "2GiB", or a
        fraction of device memory, 0.9 or "90%". By default half of the free device memory.
    maximum_pool_size : int, str, float or None
        Where MemoryError begins. By default what device and host (or the container's limit) can
        really hold; see `rmm_uvm.pool.sizing`.
    devices : int or sequence of int
        CUDA ordinals. Others keep what they have, pools of earlier calls too. With a `UvmDriver`,
        its own: leave it out.
    logging : bool
        Log every allocation with RMM's logging adaptor.
    log_file_name : str or None
        As in `rmm.reinitialize`.
    prefetch : {"auto", "always", "never"}
        When allocations are prefetched; see `rmm_uvm.mr.UvmResourceAdaptor`.
    ipc_pool_size : int, str, float or None
        Size of a separate cudaMalloc pool for CUDA IPC, such as "256MiB"; "auto" is that, or an
        eighth of the device if that is less. By default none.
    device_budget : int, str, float, Budget or None
        How much managed memory is kept on each device; see `rmm_uvm.managed_pool`. None: the kernel
        driver evicts when the device is full.
    eviction : {"repeat", "lru", "fifo", "correlation"} or None
        Which live blocks leave first; needs a budget. By default ``RMM_UVM_EVICTION``, then
        "repeat".
    neighbors : "auto", int, iterable of int, or None
        Other devices whose idle memory takes what leaves, before the host; needs a budget. By
        default ``RMM_UVM_NEIGHBORS``, and without it none; see `rmm_uvm.residency.Budget`.
    harvest_limit : int, str, mapping of int to int or str, or None
        Most bytes on each of them, or by ordinal. By default ``RMM_UVM_HARVEST_LIMIT``.
    libraries : iterable of {"cupy", "numba", "torch"}
        Libraries to let allocate through RMM, on all devices: the last call that still has a device
        decides, also with ``()``. torch cannot be undone in a process; numba must not have used a
        GPU before.
    cudf_prefetch : bool or "auto"
        libcudf's own prefetch on column access; "auto" has it on only while pages leave the
        device, since it costs while data fit. The last call decides as for `libraries`.
    driver : UvmDriver, str or None
        "simulated", "simulated:16GiB" or "simulated:16GiB@a100-pcie4" installs on a simulated
        device; see `rmm_uvm.managed_pool`.
    monitor : bool or mapping of str to object
        Watch the devices and warn of evictions: True, False, or keywords of `rmm_uvm.monitor` such
        as ``{"interval_seconds": 1}``. A trace that cannot be written is an error; what else keeps
        it from starting is said in the table.
    host_sharers : int
        Processes, this one too, that the host's memory is for: each plans with its share.
    pool_allocator, managed_memory : bool
        Of `rmm.reinitialize`, for programs that gave them there: True is what this installs.

    Returns
    -------
    Installation
        Prints as a table of all sizes and switches. Also a context manager.

    Raises
    ------
    ConfigurationError
        If an argument cannot be used. Nothing was changed.
    DriverError
        If a device does not exist. Nothing was changed.
    AvailabilityError
        If torch allocates through an earlier installation, or torch or numba has allocated already;
        if a monitor that ends with an earlier pool calls it.
    MemoryError
        If an initial slab cannot be had. On the devices of this call what was there before this
        package is installed again, and other devices are as they were. So it is after any error
        that shows only when an earlier pool of ours is gone.

    Warns
    -----
    ReplacedResourceWarning
        If a resource that somebody else had installed is replaced, or an adaptor over our pool.
    CapacityWarning
        If the device cannot be oversubscribed, or the maximum is more than is sure to be backed.
    NeighborWarning
        If a device that `neighbors` names cannot be reached, or "auto" finds none.
    FindingWarning
        Later, while the program runs; see `rmm_uvm.monitor`.

    Notes
    -----
    Call it before work starts, or between; calls of several threads take turns. Memory that is
    alive keeps its old resource alive, and is freed there.

    The devices of one call share host memory and the cap evenly. A later call for others plans with
    the host memory that the maximum of each earlier pool leaves, unless that pool can take none. It
    may be little, so give all devices to one call, or each call a maximum. Of the cap it has what
    is not taken yet.

    Each device is watched by the monitor of the call that installed it. If a call for several
    devices loses one, to a later call or to a context that is left, its monitor ends. Another with
    its settings watches the devices that are left; a trace ends, too.

    Where the environment says ``RMM_UVM=off``, arguments are checked and nothing is changed: the
    handle has the state "off". The logger ``rmm_uvm`` is told in one line what is on, at INFO.

    Examples
    --------
    >>> import rmm_uvm
    >>> with rmm_uvm.reinitialize("32MiB", driver="simulated:64MiB", libraries=()) as uvm:
    ...     uvm.devices[0].sizes.initial_bytes
    33554432
    """
    if logging and log_file_name is None and "RMM_LOG_FILE" not in os.environ:
        raise ConfigurationError("logging needs log_file_name, or RMM_LOG_FILE in the environment")
    check_kind(pool_allocator=pool_allocator, managed_memory=managed_memory)
    global _installations
    with _turn():
        if is_off():
            return _left_out(ordinals_of(devices, driver), monitor)
        if _going_in == os.getpid():
            raise AvailabilityError(
                "reinitialize is refused: a monitor that ends with its pool called it; call later"
            )
        drivers = drivers_of(devices, driver)
        ids = [each.info.device_id for each in drivers]
        watching = make_monitor(monitor, ids)
        _refuse_if_permanent("reinitialize")
        gc.collect()  # what only garbage keeps alive in an earlier pool of ours is not alive
        budgets = [
            budget_on(each, device_budget, eviction, neighbors, harvest_limit) for each in drivers
        ]
        for each, budget in zip(drivers, budgets, strict=True):
            open_neighbors_or_warn(each, budget)  # a warning may be an error
        requests = [
            PoolRequest(
                initial_pool_size,
                maximum_pool_size,
                ipc_pool_size,
                None if budget is None else budget.budget_bytes,
                follows=budget is not None and budget.follows,
                drops=budget is None or budget.drops,
            )
            for budget in budgets
        ]

        def planned(returning_bytes: int = 0) -> list[PoolSizes]:
            """Plan all before any is built: they share the host's memory and the cap evenly."""
            promised_bytes = sum(
                each.sizes.maximum_bytes
                for each in installed_devices()
                if each.info.device_id not in ids
                # Without it a pool keeps to its device, unless that has the host's memory.
                and (each.info.concurrent_managed_access or each.info.integrated)
            )
            return [
                plan_for(
                    each,
                    asked,
                    returning_bytes=returning_bytes,
                    promised_bytes=promised_bytes,
                    sharers=len(drivers),
                    host_sharers=host_sharers,
                )
                for each, asked in zip(drivers, requests, strict=True)
            ]

        planned(_returning_bytes(ids))  # an error before anything changes
        for function, args, kwargs in reversed(rmm_module._reinitialize_hooks):
            if function is not _notice_rmm_reinitialize:
                function(*args, **kwargs)
        done: list[DeviceInstallation] = []
        made: Installation | None = None
        previous: dict[int, rmm.mr.DeviceMemoryResource] = {}
        try:
            previous, kept = _retire(ids)
            for each, sizes, budget in zip(drivers, planned(), budgets, strict=True):
                device_id = each.info.device_id
                done.append(
                    install_one(
                        each,
                        sizes,
                        prefetch,
                        budget,
                        previous[device_id],
                        kept.get(device_id, (0, 0)),
                        log_file_name if logging else None,
                        logging=logging,
                    )
                )
            _wire(libraries, cudf_prefetch, [*done, *installed_devices()])
            made = Installation(
                done,
                _wirings,
                watching,
                "" if watching else "as asked",
                undo=functools.partial(_restore, frozenset(ids)),
                wire_again=functools.partial(_wire, libraries, cudf_prefetch, again=True),
            )
            _installations = (*_installations, made)
            _notice_while_installed()
            made.start_monitor()
        except BaseException as error:
            if made is not None:
                made.let_go(None)
                made.stop_monitor()
            _installations = tuple(each for each in _installations if each.devices)
            _notice_while_installed()
            _unwire()
            for device_id, resource in previous.items():
                rmm.mr.set_per_device_resource(device_id, resource)
            done.clear()
            # Notebooks keep the last traceback, and its frames would keep the pools.
            traceback.clear_frames(error.__traceback__)
            _wire_again()
            raise
        return made


def _left_out(ordinals: Sequence[int], monitor: bool | Mapping[str, Any]) -> Installation:  # noqa: FBT001 - the argument of reinitialize
    """Return the handle of a call that changed nothing, since the switch is off."""
    watching = make_monitor(monitor, ordinals)
    made = Installation((), (), watching, "" if watching else "as asked", off_on=ordinals[0])
    global _left
    _stop_left()
    made.start_monitor()  # which watches nothing, and can be asked for its report
    _left = made
    return made


def _stop_left() -> None:
    global _left
    if _left is not None:
        _left.stop_monitor()
        _left = None


def restore() -> None:
    """Put back exactly what was there before `reinitialize`; nothing if nothing is installed.

    On all devices, whichever call installed it there. A device whose resource somebody else has
    replaced meanwhile keeps theirs.

    Raises
    ------
    AvailabilityError
        If torch allocates through the pool: it frees through whichever resource is current.

    Warns
    -----
    ReplacedResourceWarning
        If the pool had been replaced, or others had put adaptors over it, which go with it.
    CapacityWarning
        If other processes hold memory of an IPC pool, which therefore stays for now.
    BudgetWarning
        If a request was larger than the budget, and nobody was told yet.

    Notes
    -----
    Calls of several threads take turns. Memory that is alive keeps the pool alive, and is freed
    there. An adaptor that somebody put over the pool, such as RMM's statistics, is not RMM's
    resource any more.
    """
    _restore(None)


def restore_devices(device_ids: Iterable[int]) -> None:
    """Do as `restore` on some devices, and leave others as they are."""
    _restore(frozenset(device_ids))


def _restore(device_ids: Collection[int] | None) -> None:
    """Put back what was there, on all devices or some; warn as `Farewell.warn`."""
    with _turn():
        _stop_left()
        if not _on(device_ids):
            return
        _refuse_if_permanent("restore")
        try:
            farewell = _take_down(device_ids)
        finally:
            _wire_again()
        farewell.warn()


def _on(device_ids: Collection[int] | None) -> list[DeviceInstallation]:
    """Return what is installed on some devices, or on all."""
    return [
        each
        for each in installed_devices()
        if device_ids is None or each.info.device_id in device_ids
    ]


def _take_down(device_ids: Collection[int] | None) -> Farewell:
    """Put back what was there on some devices, or on all; return what there is to say of it.

    Nothing is wired after it. The handles let go of these pools first: a callback of a monitor that
    restores meanwhile finds the others alone. It may not install. All of it is done also where a
    part fails, or Ctrl-C comes: what was raised last is raised at the end.
    """
    global _installations
    losing = [each for each in _installations if each.on(device_ids)]
    going = [device for each in losing for device in each.on(device_ids)]
    farewell = Farewell.to(going)  # an error before anything changes
    with contextlib.ExitStack() as taking_down:  # the last that is added is done first
        for each in reversed(losing):
            taking_down.callback(each.release)
        while going:
            taking_down.callback(_put_back, going.pop(), farewell)
        taking_down.callback(_unwire)
        taking_down.enter_context(_refusing_new_pools())
        for each in reversed(losing):  # before all else: its monitor sees the pools as they were
            taking_down.callback(_stop_monitor, each, farewell)
        for each in losing:
            each.let_go(device_ids)
        _installations = tuple(each for each in _installations if each.devices)
        _notice_while_installed()
    return farewell


def _put_back(device: DeviceInstallation, farewell: Farewell) -> None:
    with _noting():
        _earlier.add(device.managed_mr.managed_mr.residency)
    if device.current:
        rmm.mr.set_per_device_resource(device.info.device_id, device.previous_mr)
    else:
        farewell.replaced.append(device.info.device_id)


def _stop_monitor(handle: Installation, farewell: Farewell) -> None:
    farewell.refused = handle.stop_monitor() or farewell.refused


@contextlib.contextmanager
def _refusing_new_pools() -> Iterator[None]:
    global _going_in
    before, _going_in = _going_in, os.getpid()
    try:
        yield
    finally:
        _going_in = before


def _notice_while_installed() -> None:
    """Have RMM run our hook while a pool is installed, as the first of all: added last."""
    rmm.unregister_reinitialize_hook(_notice_rmm_reinitialize)
    if _installations:
        rmm.register_reinitialize_hook(_notice_rmm_reinitialize)


def _refuse_if_permanent(what: str) -> None:
    if permanent := [each.library for each in _wirings if each.permanent]:
        raise AvailabilityError(
            f"{what} is refused: {', '.join(permanent)} allocates through the installed "
            "pool and frees through whichever is current; start a new process"
        )


def _returning_bytes(device_ids: Collection[int]) -> int:
    """Bytes that earlier pools on some devices give back when they go: where nothing lives in."""
    return sum(
        device.managed_mr.managed_mr.slab_bytes + device.sizes.ipc_bytes
        for device in _on(device_ids)
        if device.managed_mr.get_allocated_bytes() == 0
    )


def _retire(
    device_ids: Sequence[int],
) -> tuple[dict[int, rmm.mr.DeviceMemoryResource], dict[int, tuple[int, int]]]:
    """Take down what earlier calls installed on some devices, so that its memory is free.

    Returns
    -------
    tuple
        By device: what to put back one day; and, where something is still alive in our old pool,
        its bytes and what the pool keeps for it.
    """
    previous: dict[int, rmm.mr.DeviceMemoryResource] = {}
    kept: dict[int, tuple[int, int]] = {}
    _stop_left()
    for device in (going := _on(device_ids)):
        pool = device.managed_mr
        if live_bytes := pool.get_allocated_bytes():
            trim_pools((pool,))
            kept[device.info.device_id] = live_bytes, pool.managed_mr.slab_bytes
        del pool, device
    if going:
        going.clear()
        _take_down(device_ids).warn()
    for device_id in device_ids:
        previous[device_id] = unobserved(rmm.mr.get_per_device_resource(device_id))
        if type(previous[device_id]) is not rmm.mr.CudaMemoryResource:
            warn_replaced(device_id, "replaces", "which rmm_uvm.restore() puts back")
    # Frames in an exception's traceback may be the last that hold the old pool.
    gc.collect()
    return previous, kept


def _wire(
    libraries: Iterable[str],
    cudf_prefetch: CudfPrefetch,
    devices: Sequence[DeviceInstallation],
    *,
    again: bool = False,
) -> None:
    """Wire the libraries to some devices, to GPUs if any is one, in place of what is wired.

    When they are wired again, one that cannot be wired any more is left out, with the reason.
    """
    global _wirings
    _unwire()
    devices = [each for each in devices if not each.info.simulated] or devices
    drivers = [each.managed_mr.driver for each in devices]
    _wirings = tuple(_wire_all(libraries, cudf_prefetch, drivers, devices, again=again))
    for each in _installations:
        each.wirings = _wirings


def _unwire() -> None:
    global _wirings
    undone, _wirings = _wirings, ()
    _undo(undone)


def _undo(wirings: Sequence[Wiring]) -> None:
    """Undo all of them. The log says which library refuses: it goes on with RMM's resource."""
    with contextlib.ExitStack() as undoing:  # goes on after Ctrl-C, too
        for wiring in reversed(wirings):
            undoing.callback(_undo_one, wiring)


def _undo_one(wiring: Wiring) -> None:
    try:
        wiring.undo()
    except Exception as error:
        _logger.warning("%s cannot be put back: %s", wiring.library, error)


def _wire_again() -> None:
    """Wire as the last call asked that has devices, where that was undone; no library fails it."""
    if _installations and not _wirings:
        _installations[-1].wire_again(installed_devices())


def _wire_all(
    libraries: Iterable[str],
    cudf_prefetch: CudfPrefetch,
    drivers: Sequence[UvmDriver],
    installed: Sequence[DeviceInstallation],
    *,
    again: bool = False,
) -> list[Wiring]:
    """Wire the libraries; torch last, since it cannot be undone. All or none, unless `again`."""
    names = [name for name in LIBRARIES if name in set(libraries)]
    if drivers[0].info.simulated:
        reason = "a simulated device runs no kernels"
        idle = [Wiring(name, active=False, reason=reason) for name in (*names, "cudf_prefetch")]
        current = wire_current_device(drivers[0].info.device_id)
        return [current, *idle] if current.active else idle
    kept = [each.managed_mr.managed_mr.residency for each in installed if each.budget]
    steps: dict[str, Callable[[], Wiring | Iterable[Wiring]]] = {
        "cudf_prefetch": lambda: wire_prefetch(cudf_prefetch, drivers, budget=bool(kept))
    }
    if kept:
        steps["libcudf_calls"] = lambda: wire_libcudf(kept)
        steps["numba_launches"] = lambda: wire_numba_launches(kept)
        steps["cupy_arrays"] = lambda: wire_cupy(kept)
        steps["xgboost_data"] = lambda: wire_xgboost_data(kept)
        steps["buffers"] = lambda: wire_buffers(kept)
    steps.update((name, functools.partial(wire, name)) for name in names)
    done: list[Wiring] = []
    try:
        for name, step in steps.items():
            try:
                made = step()
            except Exception as error:
                if not again:
                    raise
                made = Wiring(name, active=False, reason=str(error))
            done += [made] if isinstance(made, Wiring) else made
    except BaseException:
        _undo(done)
        raise
    return done


def _notice_rmm_reinitialize() -> None:
    """Say that `rmm.reinitialize` is about to replace our pool; run by RMM as a hook.

    The pool goes now: RMM sets the devices that it is told, and libcudf would go on allocating from
    ours on every other one, while RMM's Python side reports the default.
    """
    with _turn():
        if not _installations:
            return
        _refuse_if_permanent("rmm.reinitialize")
        ids = ", ".join(sorted(str(each.info.device_id) for each in installed_devices()))
        farewell = _take_down(None)
        warn_user(
            f"rmm.reinitialize replaces rmm_uvm's pool on device {ids}: call rmm_uvm.reinitialize "
            "after it, or leave rmm.reinitialize out",
            ReplacedResourceWarning,
        )
        if farewell.refused is not None:
            raise farewell.refused
