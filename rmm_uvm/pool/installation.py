# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The handle of an installed pool: what `rmm_uvm.reinitialize` returns.

Covers describing an installation and noticing that others replaced it. Does not cover installing;
see `rmm_uvm.pool.install`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor, unobserved
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import AvailabilityError, UvmWarning
from rmm_uvm.integrations import Wiring
from rmm_uvm.ipc.pool import IpcPool
from rmm_uvm.machine.device_info import Availability, DeviceInfo
from rmm_uvm.pool.device_installation import DeviceInstallation
from rmm_uvm.report.document import Block, Document, Paragraph, Table, TableColumn
from rmm_uvm.residency.budget import Budget, no_automatic_budget
from rmm_uvm.support.off_switch import OFF
from rmm_uvm.support.settings import EVICTION_POLICIES, PREFETCH_MODES, PrefetchMode
from rmm_uvm.support.units import format_bytes
from rmm_uvm.watch.monitor import Monitor

__all__ = ["DeviceInstallation", "Installation", "RemoteInstallation"]

_WIDTH = 100
_RELEASED = "rmm_uvm: this pool is not installed any more"
_IS_OFF = f"rmm_uvm is {OFF}: memory, hooks and warnings are as they were before the call"


class Installation:
    """The handle of `rmm_uvm.reinitialize`; printing it shows every size and switch.

    Also a context manager: leaving it does as `rmm_uvm.restore` on the devices of its call,
    whichever pool of ours is installed there by then, and leaves others as they are.

    Attributes
    ----------
    devices : tuple of DeviceInstallation
        One for each device of its call on which the pool is still installed. The handle lets go of
        pools that are restored or replaced, since notebooks keep every value they showed, and a
        pool as long as its handle.
    wirings : tuple of Wiring
        The libraries, and cuDF's own prefetch: for all that is installed, as the last call asked.
    monitor : rmm_uvm.monitor or None
        What watches the devices, stopped once the pools are restored or replaced; its recording
        stays. Where only some are, another with the same settings, but without a trace, watches
        those that are left from then on. None with ``monitor=False``, or if it could not start.
    monitor_reason : str
        Why there is none; empty if there is.
    arguments : mapping of str to object
        What `rmm_uvm.reinitialize` was called with, every keyword, as given. Empty once all pools
        are restored or replaced.
    state : {"on", "off", "released"}
        "off" if ``RMM_UVM=off`` kept the call from installing anything. Then there are no devices,
        `managed_mr` is the resource that RMM has, and what the handle is asked to do is not done.
        "released" once all pools are restored or replaced.
    reason : str
        Why the state is "off"; empty otherwise.
    holders : set of str
        Dask workers of this process that rely on the pools; the last that leaves puts back what was
        there before. Empty unless `rmm_uvm.dask` is at work.

    Notes
    -----
    Reading is thread-safe.
    """

    def __init__(
        self,
        devices: Sequence[DeviceInstallation],
        wirings: Sequence[Wiring],
        monitor: Monitor | None = None,
        monitor_reason: str = "",
        undo: Callable[[], None] = lambda: None,
        wire_again: Callable[[Sequence[DeviceInstallation]], None] = lambda devices: None,
        off_on: int | None = None,
    ) -> None:
        self.devices = tuple(devices)
        self.wirings = tuple(wirings)  # whoever wires the libraries again sets it
        self.monitor = monitor
        self.monitor_reason = monitor_reason
        self._undo = undo  # what leaving it as a context calls
        self.wire_again = wire_again  # the libraries to some devices, as its call asked
        self._off_on = off_on  # the device whose resource stays, where the switch is off
        self._when_released: list[Callable[[], object]] = []
        self.arguments: dict[str, Any] = {}
        self.holders: set[str] = set()

    @property
    def state(self) -> str:  # noqa: D102 - among the attributes above
        if self._off_on is not None:
            return "off"
        return "on" if self.devices else "released"

    @property
    def reason(self) -> str:  # noqa: D102 - among the attributes above
        return OFF if self.state == "off" else ""

    @property
    def managed_mr(self) -> UvmResourceAdaptor:
        """The managed pool of the first device; in the state "off" the resource that RMM has.

        Raises
        ------
        AvailabilityError
            If it was restored or replaced.
        """
        if self._off_on is not None:  # memory can be allocated from it as from a pool of ours
            return cast(UvmResourceAdaptor, rmm.mr.get_per_device_resource(self._off_on))
        return self._first.managed_mr

    @property
    def ipc_mr(self) -> IpcPool | None:
        """The IPC pool of the first device, or None. Raises as `managed_mr`."""
        return None if self._off_on is not None else self._first.ipc_mr

    @property
    def _first(self) -> DeviceInstallation:
        if not self.devices:
            raise AvailabilityError(f"{_RELEASED}: use the handle that reinitialize returned last")
        return self.devices[0]

    def set_budget(
        self, budget: int | str | float | Budget | None, *, device: int | None = None
    ) -> None:
        """Start, change or end the budget of the pools, beside programs that run.

        Parameters
        ----------
        budget : int, str, float, Budget or None
            As in `rmm_uvm.mr.UvmResourceAdaptor.set_budget`; a fraction is one of each device.
        device : int, optional
            CUDA ordinal of the only one whose budget is meant; by default that of all.

        Raises
        ------
        AvailabilityError
            If the pools were restored or replaced, or none is on that device.
        ConfigurationError
            If the budget cannot be kept on a device; those before it in `devices` have it then.

        Notes
        -----
        Thread-safe; see `rmm_uvm.mr.UvmResourceAdaptor.set_budget` for what becomes of data and
        figures. The table, the monitor and ``arguments`` go on: the first two show the budget of
        now, the last what `rmm_uvm.reinitialize` was called with.

        Examples
        --------
        >>> import rmm_uvm
        >>> handle = rmm_uvm.reinitialize(driver="simulated:64MiB", libraries=())
        >>> handle.set_budget("32MiB")
        >>> handle.devices[0].budget.budget_bytes
        33554432
        >>> handle.set_budget(None)
        >>> rmm_uvm.restore()
        """
        if self._off_on is not None:
            return
        meant = [
            each
            for each in (self._first, *self.devices[1:])
            if device in (None, each.info.device_id)
        ]
        if not meant:
            raise AvailabilityError(
                f"no managed pool is installed on device {device}: call "
                f"rmm_uvm.reinitialize(devices=[{device}]) first"
            )
        for each in meant:
            each.managed_mr.set_budget(budget)

    def line(self) -> str:
        """Return in one line what is on: pools with their budgets, and the monitor."""
        if self.state != "on":
            return repr(self)
        _, state, reason = _monitor_row(self)
        return f"{self.pools_line()}; monitor {state} ({reason})"

    def pools_line(self) -> str:
        """Return in one line the pools with their budgets, as they are now."""
        return "; ".join(map(_line_of, self.devices))

    def start_monitor(self) -> None:
        """Begin to watch. What goes wrong is a reason in the table: memory works without."""
        if self.monitor is None:
            return
        try:
            self.monitor.start()
        except Exception as error:
            self.monitor, self.monitor_reason = None, f"could not start: {error}"

    def stop_monitor(self) -> Exception | None:
        """Stop watching; return a warning that Python's filter made an error of, to raise last.

        Devices that are left are watched by another one from then on.
        """
        if self.monitor is None:
            return None
        was_running = self.monitor.running
        try:
            self.monitor.stop()
        except Exception as refused:  # the pools go back whatever happens
            return refused
        finally:
            if was_running and self.devices:
                left = [each.info.device_id for each in self.devices]
                self.monitor = self.monitor.of_devices(left)
                self.start_monitor()
        return None

    def when_released(self, call: Callable[[], object]) -> None:
        """Call `call` when a pool is restored or replaced: for those who hold parts of them."""
        self._when_released.append(call)

    def on(self, device_ids: Collection[int] | None) -> tuple[DeviceInstallation, ...]:
        """Return what is installed on some devices, or on all with None."""
        return tuple(each for each in self.devices if _is_on(each, device_ids))

    def let_go(self, device_ids: Collection[int] | None) -> None:
        """Let go of the pools on some devices, or with None on all."""
        self.devices = tuple(each for each in self.devices if not _is_on(each, device_ids))

    def release(self) -> None:
        """Tell those who hold parts of pools that were let go of, and forget what goes with all.

        All are told; what one raises is raised when they were.
        """
        if not self.devices:
            self.arguments, self.holders = {}, set()
        with contextlib.ExitStack() as telling:
            told, self._when_released = self._when_released, []
            for call in told:
                telling.callback(call)

    @property
    def permanent(self) -> tuple[str, ...]:
        """Libraries whose wiring cannot be undone in this process."""
        return tuple(wiring.library for wiring in self.wirings if wiring.permanent)

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._off_on is not None:
            self.stop_monitor()
            return
        try:
            self._undo()
        except (AvailabilityError, UvmWarning) as refused:
            if error is None:
                raise
            error.add_note(str(refused))  # the body's own error is the one to see

    def __repr__(self) -> str:
        return render(self)

    def __reduce__(self) -> tuple[type[RemoteInstallation], tuple[str]]:
        # A pool stays in its process: `client.run(rmm_uvm.reinitialize)` returns the tables.
        return RemoteInstallation, (repr(self),)


@dataclasses.dataclass(frozen=True, repr=False)
class RemoteInstallation:
    """The form of an `Installation` that was sent to another process.

    Parameters
    ----------
    text : str
        Its table, as it was when it was sent.
    """

    text: str

    def __repr__(self) -> str:
        return self.text


def _is_on(device: DeviceInstallation, device_ids: Collection[int] | None) -> bool:
    return device_ids is None or device.info.device_id in device_ids


def render(installation: Installation) -> str:
    """Return the table that the handle's repr shows."""
    if installation.state == "off":
        return _IS_OFF
    if not installation.devices:
        return _RELEASED
    from rmm_uvm.report.as_text import as_text  # with rich, which takes its time

    columns = (*[TableColumn(right=False)] * 2, TableColumn(right=False, wraps=True))
    blocks: list[Block] = []
    for device in installation.devices:
        info = device.info
        size = format_bytes(info.total_bytes)
        blocks.append(Paragraph(f"rmm_uvm on device {info.device_id}: {info.name}, {size}"))
        rows = (*_rows(device, installation.wirings), _monitor_row(installation))
        blocks.append(Table(columns, rows, gap=2))
    return as_text(Document((), tuple(blocks)), _WIDTH)


def _line_of(device: DeviceInstallation) -> str:
    info, sizes = device.info, device.sizes
    residency = device.managed_mr.managed_mr.residency
    (_, budget, why), *_ = _budget_rows(info, residency, device.counters)
    return (
        f"managed pool on device {info.device_id} ({info.name}, {format_bytes(info.total_bytes)}): "
        f"{format_bytes(sizes.initial_bytes)}, at most {format_bytes(sizes.maximum_bytes)}; "
        f"budget {budget} ({why})"
    )


def _rows(device: DeviceInstallation, wirings: Sequence[Wiring]) -> list[tuple[str, str, str]]:
    sizes = device.sizes
    ipc = format_bytes(sizes.ipc_bytes) if device.ipc_mr is not None else "off"
    limit = "none" if sizes.limit_bytes is None else format_bytes(sizes.limit_bytes)
    mode = device.managed_mr.prefetch
    rows = [
        ("initial size", format_bytes(sizes.initial_bytes), sizes.initial_reason),
        ("maximum size", format_bytes(sizes.maximum_bytes), sizes.maximum_reason),
        ("IPC pool", ipc, "cudaMalloc memory" if device.ipc_mr is not None else "not asked for"),
        ("cap", limit, "RMM_UVM_MANAGED_LIMIT"),
        *_budget_rows(device.info, device.managed_mr.managed_mr.residency, device.counters),
        _prefetch_row(mode, device.info),
        _availability_row("discard", device.info.discard),
        _availability_row("counters", device.counters),
    ]
    rows += [(w.library, "on" if w.active else "off", w.reason) for w in wirings]
    if device.old_live_bytes:
        live, kept = format_bytes(device.old_live_bytes), format_bytes(device.old_kept_bytes)
        rows.append(("old pool", kept, f"kept by {live} still alive there, until their frames go"))
    if device.adaptors:
        names = ", ".join(device.adaptors)
        rows.append(("adaptors", str(len(device.adaptors)), f"put over it by others: {names}"))
    if not device.current:
        now = type(unobserved(rmm.mr.get_per_device_resource(device.info.device_id))).__name__
        rows.append(("installed", "no", f"replaced by {now}"))
    return rows


def _monitor_row(installation: Installation) -> tuple[str, str, str]:
    monitor = installation.monitor
    if monitor is None:
        return "monitor", "off", installation.monitor_reason
    if not monitor.running:
        return "monitor", "off", "stopped; its recording is kept"
    if monitor.on_finding is None:
        return "monitor", "on", "without warnings, as asked"
    return "monitor", "on", "warns of evictions and of what leads to them"


def _budget_rows(
    info: DeviceInfo, residency: ManagedResidency, counted: Availability
) -> list[tuple[str, str, str]]:
    budget = residency.budget
    if budget is None:
        why = no_automatic_budget(info.total_bytes, oversubscribable=info.oversubscribable)
        return [("budget", "none", why or "the kernel driver evicts, when the device is full")]
    size = format_bytes(residency.budget_bytes or budget.budget_bytes)
    drops = budget.discard_dead and info.discard
    dead = "dead data go without a copy" if drops else "dead data are copied too"
    return [
        ("budget", size, f"{budget.reason}; {dead}"),
        ("eviction", budget.policy, EVICTION_POLICIES[budget.policy]),
        _migrations_row(budget, info),
        _faults_row(info, counted),
        *_sharing_rows(budget, info, residency),
        *_neighbors_rows(budget, residency),
    ]


def _sharing_rows(
    budget: Budget, info: DeviceInfo, residency: ManagedResidency
) -> list[tuple[str, str, str]]:
    """Return how the budget shares its device; nothing of a simulated one, which is its own."""
    if not budget.follows or (info.simulated and budget.board == "auto"):
        return []
    if residency.board is not None:
        others = "with budgets that follow in other processes and pools, by what each wants"
        return [("sharing", "on", others)]
    alone = "goes by free memory, and has half of what it shares at least"
    return [("sharing", "off", f"{residency.board_reason}; {alone}")]


def _neighbors_rows(budget: Budget, residency: ManagedResidency) -> list[tuple[str, str, str]]:
    if budget.neighbors is None:
        return []
    used = residency.neighbors
    words = []
    if used:
        words.append(f"their idle memory comes before the host's{_limits(budget, used)}")
    if residency.refused_neighbors:
        words.append(f"not used: {'; '.join(residency.refused_neighbors)}")
    if residency.links_reason:
        words.append(f"nothing is used there or staged, not measured: {residency.links_reason}")
    nobody = "there is no other device" if budget.neighbors else "as asked"
    names = ", ".join(map(str, used)) or "none"
    return [("neighbors", names, "; ".join(words) or nobody), _board_row(residency)]


def _limits(budget: Budget, used: Sequence[int]) -> str:
    limits = {device_id: budget.limit_on(device_id) for device_id in used}
    known = {each: format_bytes(size) for each, size in limits.items() if size is not None}
    if not isinstance(budget.harvest_limit, Mapping) and known:
        return f", at most {known[used[0]]} on each"
    return "".join(f", at most {size} on {device_id}" for device_id, size in known.items())


def _board_row(residency: ManagedResidency) -> tuple[str, str, str]:
    if residency.board is not None:
        offered = "what the budget has left of this device is offered to others"
        return "harvest board", "joined", offered
    then = "goes by what is free there" if residency.neighbors else "nothing is offered"
    return "harvest board", "not joined", f"{residency.board_reason}; {then}"


def _migrations_row(budget: Budget, info: DeviceInfo) -> tuple[str, str, str]:
    if not budget.direct:
        return "migrations", "by libcuda", "as asked"
    if not info.direct_migration:
        return "migrations", "by libcuda", info.direct_migration.reason
    return "migrations", "direct", "by the kernel driver's own call, which holds up no launch"


def _faults_row(info: DeviceInfo, counted: Availability) -> tuple[str, str, str]:
    for told in (counted, info.host_pages):
        if not told:
            return "page faults", "not found", f"what comes by them stays beside it: {told.reason}"
    return "page faults", "found", "what comes by them, unannounced, counts under the budget"


def _prefetch_row(mode: PrefetchMode, info: DeviceInfo) -> tuple[str, str, str]:
    if mode != "never" and info.integrated:
        return "prefetch", "off", "device memory is host memory: there is nothing to move"
    if mode != "never" and not info.concurrent_managed_access:
        return "prefetch", "off", info.concurrent_managed_access.reason
    return "prefetch", "off" if mode == "never" else mode, PREFETCH_MODES[mode]


def _availability_row(name: str, value: Availability) -> tuple[str, str, str]:
    return name, "on" if value else "off", value.reason
