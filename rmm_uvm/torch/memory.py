# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`managed` and `install`: torch on managed memory."""

from __future__ import annotations

import dataclasses
import functools
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import rmm
import torch

from rmm_uvm._lib.mr import ManagedMemoryResource
from rmm_uvm._lib.torch_segments import TorchSegments
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import AvailabilityError, ConfigurationError, MonitorWarning
from rmm_uvm.pool.build import budget_on, plan_for
from rmm_uvm.pool.install import installed_devices
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.pool.sizing import PoolRequest
from rmm_uvm.pool.sleeping import Slept, check_can_sleep
from rmm_uvm.residency.budget import Budget, of_torch
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.support.messages import shown
from rmm_uvm.support.off_switch import OFF, is_off
from rmm_uvm.support.settings import OF_TORCH, Activations, Evict
from rmm_uvm.support.user_line import warn_user
from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.activations.side_streams import CudaSideStreams, staging_bytes_of
from rmm_uvm.torch.announcements import announcing
from rmm_uvm.torch.deferred_frees import DeferredFrees
from rmm_uvm.torch.empty_cache import serve_empty_cache
from rmm_uvm.torch.graphs import refuse_graphs
from rmm_uvm.torch.pinned_state import PinnedState
from rmm_uvm.torch.recompute.recomputation import Recomputation
from rmm_uvm.torch.routing import Routing, check_torch
from rmm_uvm.torch.trimming import Trimming, trimming_for
from rmm_uvm.torch.uses import Uses, part_that_fits
from rmm_uvm.torch.whole_blocks import keep_large_blocks_whole

__all__ = ["TorchMemory", "install", "installed_memory", "managed", "ordinal_of"]


def ordinal_of(device: int | str | torch.device | None) -> int:
    """Return the CUDA ordinal of a device.

    Parameters
    ----------
    device : int, str, torch.device or None
        The ordinal itself; a device such as ``"cuda:0"``; None or ``"cuda"`` for the current one,
        which torch has with a GPU only.

    Raises
    ------
    ConfigurationError
        If it is no CUDA device.

    Examples
    --------
    >>> ordinal_of("cuda:1"), ordinal_of(3)
    (1, 3)
    """
    if isinstance(device, int):
        return device
    try:
        found = torch.device("cuda" if device is None else device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type != "cuda":
        raise ConfigurationError(
            f"device={shown(device)}: use a CUDA ordinal, or one such as 'cuda:0'"
        )
    return int(torch.cuda.current_device() if found.index is None else found.index)


_current: dict[int, TorchMemory] = {}


def _weakly(method: Callable[[], object]) -> Callable[[], object]:
    """Return a call of a method that does not keep its object: it is kept for ever itself."""
    weak = weakref.WeakMethod(method)
    return lambda: (bound := weak()) is not None and bound()


class TorchMemory:
    """Torch's memory on one device, in managed memory. What `managed` and `install` give.

    Attributes
    ----------
    device : int
        CUDA ordinal.
    managed_mr : rmm_uvm.mr.ManagedMemoryResource
        Where its segments come from; the one of the installed managed pool, if there is one.
    """

    def __init__(
        self,
        device: int,
        managed_mr: ManagedMemoryResource,
        maximum_bytes: int,
        scarce_bytes: int,
        evict: Evict,
        activations: Activations = "migrate",
    ) -> None:
        self.device = device
        self.managed_mr = managed_mr
        self._managed = managed_mr.residency
        self._maximum_bytes = maximum_bytes
        self._segments = TorchSegments(managed_mr, maximum_bytes)
        self._activations = activations
        self._copies: CopiedActivations | None = None
        self._recompute: Recomputation | None = None
        self._uses: Uses | None = None
        self._unfollow: Callable[[], None] | None = None
        self._pinned = PinnedState(self._managed) if evict == "activations" else None
        self._routing = Routing(self._segments, device)
        self._regraph = refuse_graphs()
        self._empty_cache_as_ever = serve_empty_cache(self._routing.renewed)
        self._deferred: DeferredFrees | None = None
        self._trimming: Trimming | None = None
        self._split_blocks: Callable[[], None] = lambda: None
        self._closed = False
        self._counted: dict[str, Any] = {}  # by parts that are gone
        self._segments.on_owed(self._routing.give_back)
        self._segments.on_scarcity(_weakly(self._follow), scarce_bytes)
        if not self._managed.keeps_budget:
            self._look_at_deferred()  # memory may grow without an end
        else:
            self._segments.on_pressure(_weakly(self._begin))

    @property
    def acting(self) -> bool:
        """Whether the budget was passed, so that uses are announced."""
        return self._uses is not None or bool(self._counted.get("acting"))

    @property
    def pool(self) -> Any:
        """The `torch.cuda.MemPool` that torch's allocations are routed to now; None once closed.

        `torch.cuda.empty_cache` has another one take its place. Whoever keeps this one keeps its
        free memory.
        """
        return self._routing.pool

    def close(self) -> None:
        """Have torch allocate as before. Tensors stay where they are. Again: does nothing."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as parts:  # all of them, whatever one of them raises; the last one first
            parts.callback(self._forget_parts)
            parts.callback(_current.pop, self.device, None)
            parts.callback(self._stop_following)
            parts.callback(self._segments.on_owed, None)
            parts.callback(self._routing.end)  # what is handed out until then has to be told
            # Pins end while frees are told: an address may be somebody else's next.
            for hook in (self._pinned, self._uses, self._trimming, self._deferred):
                if hook is not None:
                    parts.callback(hook.end)
            parts.callback(self._split_blocks)
            parts.callback(self._empty_cache_as_ever)
            parts.callback(self._regraph)

    def sleep(self) -> Slept:
        """Send torch's memory to the host, so that others have the device until `wake`.

        Free segments are given back, and all other managed memory leaves with its contents: also
        of a managed pool that torch shares a budget with.

        Returns
        -------
        rmm_uvm.pool.sleeping.Slept

        Raises
        ------
        AvailabilityError
            If it is closed, or there is no budget, so that nobody knows what lies on the device.

        Notes
        -----
        See `rmm_uvm.sleep`. The device is waited for. Copied activations keep what their copies go
        through: a thirty-second of the budget, at most 64 MiB.
        """
        self._check_sleeps("sleep")
        before = self._segments.statistics()["segment_bytes"]
        with self._routing.renewed():
            torch._C._cuda_emptyCache()
        after = self._segments.statistics()["segment_bytes"]
        return Slept(self._managed.sleep(), max(before - after, 0))

    def wake(self) -> int:
        """Bring back what `sleep` sent away, as far as the budget goes.

        Returns
        -------
        int
            Bytes that came. What was used last comes first; the rest comes when it is used.

        Raises
        ------
        AvailabilityError
            As `sleep`.
        """
        self._check_sleeps("wake")
        came_bytes = self._managed.wake(torch._C._cuda_getCurrentRawStream(self.device))
        if self._copies is not None:
            self._copies.on_moved()
        return came_bytes

    def _check_sleeps(self, asked: str) -> None:
        if self._closed:
            raise AvailabilityError(
                f"{asked}() was called after close(): torch's memory is its own again"
            )
        check_can_sleep(self._managed, asked)

    def _stop_following(self) -> None:
        unfollow, self._unfollow = self._unfollow, None  # it leads back to us
        if unfollow is not None:
            unfollow()

    def _forget_parts(self) -> None:
        self._counted = self._counts_of_parts()  # they hold streams, device memory
        self._uses = self._copies = self._recompute = None
        self._deferred = self._trimming = None

    def statistics(self) -> dict[str, Any]:
        """Return counts of segments and, with a budget, of what was done to keep it.

        Returns
        -------
        dict
            ``acting``, ``steps`` of optimisers seen since, ``reclaims`` (how often frees that torch
            had deferred were looked at), ``trims`` (how often free segments were given back since
            copies made room), ``segments`` (dict), ``residency`` (dict or None; see
            `rmm_uvm.residency.ResidencyStatistics`), ``last_refusal`` (str), ``activations`` (dict,
            see docs/use/training.md; None unless they are copied and the budget was passed),
            ``recompute`` (likewise, of modules that are run again).
        """
        return {
            **(self._counted or self._counts_of_parts()),
            "segments": dict(self._segments.statistics()),
            "residency": self._managed.residency(),
            "last_refusal": self._segments.last_refusal,
        }

    def _counts_of_parts(self) -> dict[str, Any]:
        return {
            "acting": self.acting,
            "steps": 0 if self._uses is None else self._uses.steps,
            "reclaims": 0 if self._deferred is None else self._deferred.looks_total,
            "trims": 0 if self._trimming is None else self._trimming.trims_total,
            "activations": None if self._copies is None else self._copies.statistics(),
            "recompute": None if self._recompute is None else self._recompute.statistics(),
        }

    def _follow(self) -> None:
        """Know what is free from now on, since memory is scarce; called as `_begin`."""
        if self._closed or self._unfollow is not None:
            return
        try:
            self._unfollow = self._routing.follow()
        except Exception as error:
            warn_user(
                "torch is near the maximum of its memory, and what is free cannot be known: "
                f"{type(error).__name__}: {error}; call torch.cuda.empty_cache() when it is out "
                "of memory",
                MonitorWarning,
            )

    def _begin(self) -> None:
        """Follow and announce from now on; called by the main thread between two bytecodes."""
        if self._closed or self._uses is not None:
            return
        residency = self._managed.residency()
        assert residency is not None
        budget_bytes, pinned = residency["budget_bytes"], self._pinned
        streams = self._side_streams(budget_bytes)
        recompute = copies = None
        if streams is not None:
            if self._activations == "auto":
                recompute = Recomputation(
                    torch.device("cuda", self.device),
                    budget_bytes,
                    seconds_of_copies=streams.seconds_of_copies,
                )
            copies = self._copying(streams, budget_bytes, recompute)
        uses = Uses(
            announcing(self._managed, self.device),
            self._segments.measured,
            None if pinned is None else pinned.keep,
            functools.partial(part_that_fits, budget_bytes),
            copies=copies,
            confirmed=self._managed.confirmed_present,
            recompute=recompute,
            budget_bytes=budget_bytes,
        )
        try:
            self._stop_following()
            self._unfollow = self._routing.follow(
                None if pinned is None else pinned.freed,
                None if copies is None else copies.several_streams,
            )
            uses.begin()
        except BaseException as error:
            uses.end()
            self._stop_following()
            if not isinstance(error, Exception):
                raise  # an interrupt is the program's
            warn_user(
                "torch is past the budget, and what it uses cannot be announced: "
                f"{type(error).__name__}: {error}; memory leaves in the order of its age",
                MonitorWarning,
            )
            return
        self._uses, self._copies, self._recompute = uses, copies, recompute
        self._split_blocks = keep_large_blocks_whole(budget_bytes)
        self._look_at_deferred()
        if copies is not None:
            self._trimming = trimming_for(
                copies,
                self._routing,
                self._managed,
                self._segments,
                self._maximum_bytes,
                budget_bytes,
                bool if recompute is None else recompute.keep_less,
            )

    def _side_streams(self, budget_bytes: int) -> CudaSideStreams | None:
        """Return what copies activations, if they are to be copied and there can be streams."""
        if self._activations == "migrate":
            return None
        try:
            return CudaSideStreams(self.managed_mr.driver, staging_bytes_of(budget_bytes))
        except (RuntimeError, MemoryError) as error:
            warn_user(
                f"activations={self._activations!r} was asked for, and there are no streams for "
                f"copies: {error}; activations migrate",
                MonitorWarning,
            )
            return None

    def _copying(
        self, streams: CudaSideStreams, budget_bytes: int, recompute: Recomputation | None
    ) -> CopiedActivations:
        managed = self._managed

        def evicted_bytes() -> int:
            residency = managed.residency()
            assert residency is not None
            return residency["evicted_bytes"]

        return CopiedActivations(
            streams,
            torch.device("cuda", self.device),
            budget_bytes,
            managed.take_live_blocks,
            evicted_bytes=evicted_bytes,
            confirm=lambda: managed.confirm_present(streams.current()),
            relieve=None if recompute is None else recompute.on_round,
        )

    def _look_at_deferred(self) -> None:
        segments = self._segments
        self._deferred = DeferredFrees(
            self._routing.reclaim,
            self._routing.deferred_bytes,
            lambda: segments.statistics()["segment_bytes"],
        )


_COUNTS_OF_SEGMENTS = (  # as `TorchSegments.statistics` has them
    *("segment_bytes", "peak_segment_bytes", "segments", "refused", "reused", "freed", "unfenced"),
    "in_place",
)


class _OffTorchMemory(TorchMemory):
    """Stands for `TorchMemory` where the switch is off: torch allocates as without us."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.managed_mr = cast(ManagedMemoryResource, rmm.mr.get_per_device_resource(device))

    @property
    def acting(self) -> bool:
        return False

    @property
    def pool(self) -> Any:
        return None

    def sleep(self) -> Slept:
        return Slept(0, 0, OFF)

    def wake(self) -> int:
        return 0

    def close(self) -> None:
        if _current.get(self.device) is self:
            del _current[self.device]

    def statistics(self) -> dict[str, Any]:
        return {
            "acting": False,
            "steps": 0,
            "reclaims": 0,
            "trims": 0,
            "activations": None,
            "recompute": None,
            "segments": dict.fromkeys(_COUNTS_OF_SEGMENTS, 0),
            "residency": dataclasses.asdict(ResidencyStatistics.of_none()),
            "last_refusal": "",
        }


def _left_out(device: int | str | torch.device | None) -> TorchMemory:
    """Return the handle of a call that changed nothing; torch is not made to open a GPU for it."""
    ordinal = _ordinal_without_a_gpu(device)
    _refuse_twice(ordinal)
    memory = _current[ordinal] = _OffTorchMemory(ordinal)
    logging.getLogger("rmm_uvm").info("rmm_uvm: torch's memory is as it was: %s", OFF)
    return memory


def _ordinal_without_a_gpu(device: int | str | torch.device | None) -> int:
    is_current = device is None or str(device) == "cuda"
    return 0 if is_current and not torch.cuda.is_initialized() else ordinal_of(device)


def _refuse_twice(ordinal: int) -> None:
    if ordinal in _current:
        raise AvailabilityError(
            f"torch allocates managed memory on device {ordinal} already: close that first"
        )


def installed_memory(device: int | str | torch.device | None = None) -> TorchMemory | None:
    """Return what serves torch on a device now; None if nothing of ours does.

    Parameters
    ----------
    device : int, str or torch.device, optional
        As in `install`.

    Raises
    ------
    ConfigurationError
        If it is no CUDA device.
    """
    # Without a GPU torch has no current device, and nothing serves it.
    if device is None and not _current:
        return None
    of_ours = any(not isinstance(each, _OffTorchMemory) for each in _current.values())
    return _current.get(ordinal_of(device) if of_ours else _ordinal_without_a_gpu(device))


def install(
    device: int | str | torch.device | None = None,
    *,
    device_budget: int | str | float | Budget | None = "auto",
    eviction: str | None = None,
    evict: Evict = "all",
    activations: Activations = "migrate",
    eager: bool | None = None,
    maximum: int | str | float | None = None,
    mr: rmm.mr.DeviceMemoryResource | None = None,
) -> TorchMemory:
    """Have torch allocate managed memory on a device, until `TorchMemory.close` or for good.

    Parameters
    ----------
    device : int, str or torch.device, optional
        CUDA ordinal, or a device such as ``"cuda:0"``; by default torch's current one.
    device_budget, eviction : optional
        As in `rmm_uvm.managed_pool`. Where `rmm_uvm.reinitialize` installed a pool on this device,
        torch shares its budget, and neither may be given.
    evict : {"all", "activations"}
        What may leave the device: everything, or only what is neither parameter nor state of an
        optimiser, as far as those fit in half of the budget.
    activations : {"migrate", "copy", "auto"}
        How what autograd keeps leaves past the budget: as any other memory; copied to pinned
        host memory beside the kernels, as much as does not fit, and back ahead of its use; or not
        kept, where a module may be run again, and copied otherwise.
    eager : bool, optional
        Fetch what comes next ahead of its use; False, and by default: just before it. A `Budget`
        that is given has it as ``ahead``.
    maximum : int, str or float, optional
        Most bytes of torch's segments; by default what device and host can hold.
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool whose budget torch shares; by default the one that `rmm_uvm.reinitialize`
        installed on this device, if there is one.

    Returns
    -------
    TorchMemory
        Its handle. Where the environment says ``RMM_UVM=off``, of memory that is torch's own.

    Raises
    ------
    AvailabilityError
        If torch cannot be served, or is served already.
    ConfigurationError
        If a setting is unusable.

    Notes
    -----
    Torch's statistics, `torch.cuda.empty_cache` and `torch.cuda.OutOfMemoryError` work as always:
    free segments are given back where a request would not fit otherwise. Tensors that exist already
    stay where they are. For that, for `torch.cuda.empty_cache`, and after steps of optimisers with
    much memory freed that other streams used (`torch.Tensor.record_stream`), or dropped beside
    copies, the device is waited for and the routing ends for a moment: what another thread
    allocates then is not managed.
    """
    OF_TORCH["evict"].read(evict)
    OF_TORCH["activations"].read(activations)
    if eager is not None and not isinstance(eager, bool):
        raise ConfigurationError(
            f"eager={shown(eager)}: use True, False, or None for the budget's ahead"
        )
    if is_off():
        return _left_out(device)
    check_torch()
    ordinal = ordinal_of(device)
    _refuse_twice(ordinal)
    managed_mr = _installed_resource(ordinal) if mr is None else managed_pools(mr)[0].managed_mr
    if managed_mr is not None and managed_mr.driver.info.device_id != ordinal:
        raise ConfigurationError(
            f"mr is a pool of device {managed_mr.driver.info.device_id}, torch is to allocate on "
            f"device {ordinal}: give one of that device"
        )
    if managed_mr is None:
        driver = choose_driver(ordinal, "cuda")
        budget = budget_on(driver, device_budget, eviction)
        if budget is not None and not isinstance(device_budget, Budget):
            budget = of_torch(budget, eager=eager)
        elif budget is not None and eager is not None:
            budget = dataclasses.replace(budget, ahead=eager)
        managed_mr = ManagedMemoryResource(driver, budget=budget)
    elif device_budget != "auto" or eviction is not None or eager is not None:
        raise ConfigurationError(
            f"torch shares the budget of the managed pool on device {ordinal}: give device_budget, "
            "eviction and eager to whoever made that"
        )
    sizes = plan_for(managed_mr.driver, PoolRequest(None, maximum))
    # Of a maximum that was given it is known from the start what is free: else the first large
    # request could not be served in place of it. Torch's telling costs little, but not nothing.
    scarce_bytes = sizes.maximum_bytes // 2 if maximum is None else 0
    memory = TorchMemory(ordinal, managed_mr, sizes.maximum_bytes, scarce_bytes, evict, activations)
    _current[ordinal] = memory
    return memory


@contextmanager
def managed(
    device: int | str | torch.device | None = None,
    *,
    device_budget: int | str | float | Budget | None = "auto",
    eviction: str | None = None,
    evict: Evict = "all",
    activations: Activations = "migrate",
    eager: bool | None = None,
    maximum: int | str | float | None = None,
    mr: rmm.mr.DeviceMemoryResource | None = None,
) -> Iterator[TorchMemory]:
    """Have torch allocate managed memory within a ``with`` block; see `install`.

    Yields
    ------
    TorchMemory
        Its handle. Tensors may outlive the block.
    """
    memory = install(
        device,
        device_budget=device_budget,
        eviction=eviction,
        evict=evict,
        activations=activations,
        eager=eager,
        maximum=maximum,
        mr=mr,
    )
    try:
        yield memory
    finally:
        memory.close()


def _installed_resource(device: int) -> ManagedMemoryResource | None:
    for one in installed_devices():
        managed_mr = one.managed_mr.managed_mr
        if managed_mr.driver.info.device_id == device:
            return managed_mr
    return None
