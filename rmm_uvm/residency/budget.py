# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A budget: how much of a device managed memory may take, and how that is kept.

Covers the settings and their bounds. Does not cover keeping it, which is C++
(``cpp/include/rmm_uvm/residency/residency_manager.hpp``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import cast

from rmm_uvm.errors import CapacityWarning, ConfigurationError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.residency.neighbors import HarvestLimit, Neighbors, check_limited
from rmm_uvm.residency.policies import DEFAULT_POLICY
from rmm_uvm.support.messages import shown
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES, SETTINGS
from rmm_uvm.support.units import (
    MAXIMUM_BYTES,
    VA_BLOCK_BYTES,
    format_bytes,
    parse_size,
    whole_number,
)
from rmm_uvm.support.user_line import warn_user

__all__ = [
    "Budget",
    "auto_bytes",
    "budget_for",
    "next_budget",
    "no_automatic_budget",
    "of_torch",
    "only_sizes_differ",
    "refuse_larger",
    "refuse_without_budget",
]

_OVERSUBSCRIBABLE = Availability(available=True)
# Below the budget, so that the next request finds room; small, since it comes off the working set.
_LOW_FRACTION = 1 / 48
_MOST_LOW_BYTES = 384 << 20
_SETTINGS = ("device_budget", "eviction", "neighbors", "harvest_limit")
# Of the device, kept free of a budget that follows others: their next jump finds room there.
_RESERVE_FRACTION = 1 / 32
_MOST_RESERVE_BYTES = 2 << 30
_SWITCHES = (
    *("follows", "rank_dead"),
    *("discard_dead", "fetch", "ahead", "background"),
    *("in_place", "copy_beside", "multipath", "keep_copies", "direct"),
)


@dataclasses.dataclass(frozen=True)
class Budget:
    """How much of a device managed memory may take, and how that is kept.

    Parameters
    ----------
    budget_bytes : int
        Managed bytes that are kept on the device, >= 8 MiB. What faults in comes on top at first.
    policy : {"repeat", "lru", "fifo", "correlation"}
        Which live blocks leave first. "repeat" and "correlation" learn a program's repetition, and
        are "lru" while they foresee little.
    follows : bool
        The budget is what others leave of `budget_bytes`, and follows while they take and give
        back: memory of cudaMalloc in all processes, and what else the device's free memory shows
        to be gone. As ``device_budget="auto"``, which is this with all of the device but a reserve
        of 1/32, at most 2 GiB. What they hold comes off `budget_bytes`, however large the device
        is. `low_bytes` and `ahead_bytes` follow. `UvmResourceAdaptor.budget_bytes` says what it is
        now.
    discard_dead : bool
        Drop dead blocks before live ones are copied; False copies them, as the kernel driver does.
        Without `fetch` nothing is dropped: discarded pages would fault in one by one.
    rank_dead : bool
        Have dead blocks that are dropped leave when it is their turn among the live ones, 48
        times as early as one that is copied: those last whose memory is expected to be handed out
        again soon. False, and with "fifo": they leave first.
    fetch : bool
        Bring in what is allocated or announced; False leaves it to page faults. With "fifo"
        and without `background` that acts like a smaller card, for comparisons: what a request uses
        later leaves for what it uses first. A pool with ``prefetch="always"`` then makes room for
        `rmm.mr.PrefetchResourceAdaptor` over it, and ranks anew what that prefetches.
    ahead : bool
        Fetch what is expected next, as far as it is foreseen, and `fetch`. How far ahead is learnt:
        what comes too early drives out what would have stayed, and more bytes move.
    keep_copies : bool or None
        Have the host keep its copy of what comes back to be read, so that it leaves without being
        copied again; needs `fetch`, with which it is the default. Nothing is kept where page tables
        cannot be read (`DeviceInfo.host_pages`). This is about blocks of 2 MiB of one allocation
        that was only announced to be read, as by libcudf. A kernel that writes there unannounced is
        slow the first time: 9 ms for a block on an H100.
    background : bool
        A thread evicts and fetches ahead; False: only requests that need room evict.
    neighbors : "auto", int, iterable of int, or None
        Other devices whose idle memory live blocks leave to before the host: CUDA ordinals, or
        "auto" for all that have peer access. 1/16 of each device's memory stays free, and what its
        owner needs goes back. What they have no room for, and everything while memory is advised
        about (`rmm_uvm.advise`), leaves to the host.
    harvest_limit : int, str, mapping of int to int or str, or None
        Most bytes on each neighbour, or by ordinal, each at least 2 MiB; by default no limit.
    in_place : bool
        Let kernels use on a neighbour, through a mapping, what is streamed through once, as far as
        that is foreseen and cheaper by the links' rates, which are measured first.
    copy_beside : bool
        Copy what lies unused on neighbours to the host, when there is nothing else to do: then its
        owner has the memory at once.
    multipath : bool
        Let some of a burst from the host come over a neighbour's own link to the host, as much as
        the measured rates say, where migrations are direct.
    board : str or None
        Where processes agree: the folder of their board, "auto" for ``/dev/shm`` on a GPU, or None
        to go by free memory alone. Budgets that follow tell each other there what they want of a
        device, and share it. With `neighbors`, it is offered to others there what the budget has
        left of this device; ``neighbors=[]`` only offers.
    low_bytes : int or None
        Down to which the thread evicts once a request was short of room, live blocks only as far
        as requests waited for some lately; by default 1/48 below the budget, at most 384 MiB.
    direct : bool
        Migrate past libcuda where `DeviceInfo.direct_migration` is available: a migration by
        libcuda holds up kernel launches.
    piece_bytes : int or None
        Largest migration of the thread, bytes; by default 8 MiB where migrations are direct, and
        4 MiB by libcuda, where larger ones hold up launches more.
    fetch_bytes : int or None
        Largest migration of what a program waits for, bytes; by default 32 MiB, and 4 MiB.
    ahead_bytes : int or None
        Look-ahead of what is fetched before its use, 0 to the budget. By default it is learnt,
        beginning at 1/8 of the budget: longer while expected uses find data away, shorter while
        what came early leaves before its use; at least a piece, at most half of the budget.
        `ResidencyStatistics.ahead_bytes` is what it is now.
    reason : str
        Where the figure comes from, for the table of `rmm_uvm.reinitialize`.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds, or the policy is unknown.

    Examples
    --------
    >>> from rmm_uvm.residency import Budget
    >>> Budget(64 << 20).low_bytes
    65710763
    """

    budget_bytes: int
    policy: str = DEFAULT_POLICY
    discard_dead: bool = True
    fetch: bool = True
    ahead: bool = True
    keep_copies: bool | None = None
    background: bool = True
    neighbors: str | Iterable[int] | None = None
    harvest_limit: int | str | Mapping[int, int | str] | None = None
    in_place: bool = False
    copy_beside: bool = False
    multipath: bool = False
    board: str | None = "auto"
    low_bytes: int | None = None
    direct: bool = True
    piece_bytes: int | None = None
    fetch_bytes: int | None = None
    ahead_bytes: int | None = None
    follows: bool = False
    rank_dead: bool = True
    reason: str = dataclasses.field(default="as asked", compare=False, repr=False)

    @property
    def drops(self) -> bool:
        """Whether dead blocks may be dropped: for `discard_dead`, which needs `fetch`."""
        return self.discard_dead and self.fetch

    def __post_init__(self) -> None:
        for name in ("budget_bytes", "low_bytes", "piece_bytes", "fetch_bytes", "ahead_bytes"):
            value = getattr(self, name)
            if value is None and name != "budget_bytes":
                continue
            if (number := whole_number(value)) is None:
                raise ConfigurationError(f"{name}={shown(value)}: expected a number of bytes")
            if number > MAXIMUM_BYTES:
                raise ConfigurationError(f"{name}={shown(value)}: a size is below 2**63 bytes")
            object.__setattr__(self, name, number)
        if self.keep_copies is None:
            object.__setattr__(self, "keep_copies", bool(self.fetch))
        for name in _SWITCHES:
            if not isinstance(value := getattr(self, name), bool):
                raise ConfigurationError(f"{name}={shown(value)}: expected True or False")
        if self.board is not None and not isinstance(self.board, str):
            raise ConfigurationError(
                f"board={shown(self.board)}: expected a folder, 'auto' or None"
            )
        SETTINGS["eviction"].kind.read(self.policy, "policy")
        object.__setattr__(self, "neighbors", SETTINGS["neighbors"].read(self.neighbors))
        limit = SETTINGS["harvest_limit"].read(self.harvest_limit)
        if limit is not None and self.neighbors is None:
            raise ConfigurationError(
                f"harvest_limit={shown(self.harvest_limit)} without neighbours: give neighbors "
                "too, 'auto' or CUDA ordinals"
            )
        check_limited(self.neighbors, limit)
        object.__setattr__(self, "harvest_limit", limit)
        if self.keep_copies and not self.fetch:
            raise ConfigurationError(
                "keep_copies with fetch=False: what page faults bring keeps no copy; leave one out"
            )
        if self.follows and not self.fetch:
            raise ConfigurationError(
                "follows with fetch=False: what page faults bring is not known; leave one out"
            )
        if self.neighbors is not None and not self.fetch:
            raise ConfigurationError(
                "neighbors with fetch=False: what lies there would come by page faults, unseen; "
                "leave one out"
            )
        if self.budget_bytes < LEAST_BUDGET_BYTES:
            raise ConfigurationError(
                f"device_budget is {shown(self.budget_bytes)} bytes: at least "
                f"{format_bytes(LEAST_BUDGET_BYTES)} are needed to move anything"
            )
        if self.low_bytes is None:
            below = min(int(self.budget_bytes * _LOW_FRACTION), _MOST_LOW_BYTES)
            object.__setattr__(self, "low_bytes", self.budget_bytes - below)
        elif not 0 <= self.low_bytes <= self.budget_bytes:
            raise ConfigurationError(
                f"low_bytes={shown(self.low_bytes)}: expected 0 to the budget, "
                f"{format_bytes(self.budget_bytes)}"
            )
        if self.ahead_bytes is not None and not 0 <= self.ahead_bytes <= self.budget_bytes:
            raise ConfigurationError(
                f"ahead_bytes={shown(self.ahead_bytes)}: expected 0 to the budget, "
                f"{format_bytes(self.budget_bytes)}"
            )
        for name in ("piece_bytes", "fetch_bytes"):
            value = getattr(self, name)
            if value is not None and value < VA_BLOCK_BYTES:
                raise ConfigurationError(
                    f"{name}={shown(value)}: at least a block of {format_bytes(VA_BLOCK_BYTES)}"
                )

    def limit_on(self, device_id: int) -> int | None:
        """Return the most bytes that may lie on a neighbour; None for no limit."""
        if isinstance(self.harvest_limit, Mapping):
            return cast("int | None", self.harvest_limit.get(device_id))
        return cast("int | None", self.harvest_limit)


def auto_bytes(total_bytes: int) -> int:
    """Return what a budget that follows others shares with them: the device less a reserve, bytes.

    Examples
    --------
    >>> auto_bytes(80 << 30) >> 30, auto_bytes(64 << 20) >> 20
    (78, 62)
    """
    reserve_bytes = min(int(total_bytes * _RESERVE_FRACTION), _MOST_RESERVE_BYTES)
    return max((total_bytes - reserve_bytes) // VA_BLOCK_BYTES * VA_BLOCK_BYTES, 0)


def _asked(
    device_budget: int | str | float | Budget | None, around: int | str | float | None
) -> tuple[int | str | float | Budget | None, str]:
    """Return what is asked for, None for no budget, and how it is called where it was given.

    "auto" leaves it to the environment, and "none" is None as people write it there.
    """
    name = "device_budget"
    if around is not None and isinstance(device_budget, str) and device_budget == "auto":
        device_budget, name = around, SETTINGS["device_budget"].variable
    is_none = isinstance(device_budget, str) and device_budget == "none"
    return (None if is_none else device_budget), name


def _size_of(asked: int | str | float, total_bytes: int, name: str) -> tuple[int, bool]:
    """Return the bytes of a size or of "auto", and whether the budget follows others."""
    if asked == "auto":
        return auto_bytes(total_bytes), True
    return parse_size(asked, total_bytes, name), False


def budget_for(
    device_budget: int | str | float | Budget | None,
    policy: str | None,
    total_bytes: int,
    neighbors: Neighbors = None,
    harvest_limit: HarvestLimit = None,
    *,
    oversubscribable: Availability = _OVERSUBSCRIBABLE,
    policy_name: str = "eviction",
) -> Budget | None:
    """Return the budget that was asked for on a device; None for none.

    What is not given is read from the environment: ``RMM_UVM_DEVICE_BUDGET`` for "auto" and, where
    there is a budget, ``RMM_UVM_EVICTION``, ``RMM_UVM_NEIGHBORS`` and ``RMM_UVM_HARVEST_LIMIT``.

    Parameters
    ----------
    device_budget : int, str, float, Budget or None
        Bytes, "12GiB", a fraction of device memory, "auto", or all settings; "none" is None.
    policy : str or None
        An eviction policy; None for the default.
    total_bytes : int
        Device memory.
    neighbors, harvest_limit : optional
        As of `Budget`; they replace what a `Budget` says.
    oversubscribable : Availability
        Whether data can exceed the device (`DeviceInfo.oversubscribable`); if not, there is none.
    policy_name : str
        What the caller's argument is called, for errors.

    Raises
    ------
    ConfigurationError
        If the budget is larger than the device, below 8 MiB or no size; if the policy is unknown;
        if the policy or neighbours are given without a budget, or a limit without neighbours.

    Warns
    -----
    CapacityWarning
        If one was asked for, other than "auto", and data cannot exceed the device.
    """
    # All of them: a variable that cannot be used is refused, also where nothing uses it.
    around = {name: SETTINGS[name].of_environment() for name in _SETTINGS}
    device_budget, name = _asked(device_budget, around["device_budget"])
    reason = "as asked" if name == "device_budget" else name
    policy = SETTINGS["eviction"].read(policy, policy_name)
    if device_budget == "auto" and name == "device_budget":
        reason = "auto"
    why = no_automatic_budget(total_bytes, oversubscribable=oversubscribable)
    if device_budget == "auto" and why:
        device_budget = None
    elif device_budget is None and name != "device_budget":
        why = f"{name} is none"
    if device_budget is None:
        refuse_without_budget(policy, neighbors, policy_name, why, possible=bool(oversubscribable))
        return None
    if isinstance(device_budget, Budget):
        budget = device_budget
        asked = {"policy": policy, "neighbors": neighbors, "harvest_limit": harvest_limit}
        asked = {name: value for name, value in asked.items() if value is not None}
        if asked:
            budget = dataclasses.replace(budget, **asked)  # type: ignore[arg-type]
    else:
        chosen = around["neighbors"] if neighbors is None else neighbors
        if harvest_limit is None and chosen is not None:
            harvest_limit = around["harvest_limit"]
        size_bytes, follows = _size_of(device_budget, total_bytes, name)
        if follows:
            reserve = format_bytes(total_bytes - size_bytes)
            reason = f"{reason}: what others leave of the device, less {reserve}"
        budget = Budget(
            size_bytes,
            policy or around["eviction"] or DEFAULT_POLICY,
            neighbors=SETTINGS["neighbors"].read(chosen),
            harvest_limit=harvest_limit,
            follows=follows,
            reason=reason,
        )
    refuse_larger(budget.budget_bytes, total_bytes)
    if not oversubscribable:
        warn_user(
            f"{name} is {format_bytes(budget.budget_bytes)}, and the device keeps none: "
            f"{oversubscribable.reason}. Leave it out",
            CapacityWarning,
        )
        return None
    return budget


def of_torch(budget: Budget, *, eager: bool | None) -> Budget:
    """Return a budget as torch keeps it, where nobody gave all settings.

    Parameters
    ----------
    budget : Budget
        As by default.
    eager : bool or None
        Fetch ahead of need; None is False.

    Notes
    -----
    Dead blocks leave first: past a budget most of torch's are activations of the last step, and
    copied activations need their room.

    Examples
    --------
    >>> kept = of_torch(Budget(64 << 20), eager=None)
    >>> kept.ahead, kept.rank_dead
    (False, False)
    """
    return dataclasses.replace(budget, ahead=bool(eager), rank_dead=False)


def next_budget(
    kept: Budget | None,
    asked: int | str | float | Budget | None,
    total_bytes: int,
    *,
    oversubscribable: Availability = _OVERSUBSCRIBABLE,
) -> Budget | None:
    """Return the budget that follows one while a program runs; None for none.

    Parameters
    ----------
    kept : Budget or None
        What is kept until now.
    asked : int, str, float, Budget or None
        Bytes, "12GiB", a fraction of device memory or "auto": all else stays as it was, and the low
        watermark follows. A `Budget` replaces everything; None ends it, whatever the environment
        says.
    total_bytes : int
        Device memory.
    oversubscribable : Availability
        As in `budget_for`.

    Raises
    ------
    ConfigurationError
        As `budget_for`.

    Warns
    -----
    CapacityWarning
        As `budget_for`.
    """
    asked, name = _asked(asked, SETTINGS["device_budget"].of_environment())
    if asked == "auto" and no_automatic_budget(total_bytes, oversubscribable=oversubscribable):
        asked = None
    if asked is None:
        return None
    if kept is None or isinstance(asked, Budget) or not oversubscribable:
        return budget_for(asked, None, total_bytes, oversubscribable=oversubscribable)
    size_bytes, follows = _size_of(asked, total_bytes, name)
    refuse_larger(size_bytes, total_bytes)
    ahead_bytes = None if kept.ahead_bytes is None else min(kept.ahead_bytes, size_bytes)
    return dataclasses.replace(
        kept,
        budget_bytes=size_bytes,
        low_bytes=None,
        ahead_bytes=ahead_bytes,
        follows=follows,
        reason="as asked" if name == "device_budget" else name,
    )


def only_sizes_differ(kept: Budget, other: Budget) -> bool:
    """Whether one budget can become another while it is kept: all but its sizes stay.

    One that follows others begins anew: its size is what it follows within.
    """
    if kept.follows or other.follows:
        return False
    ahead_bytes = kept.ahead_bytes
    if ahead_bytes is not None:  # it is never more than the budget
        ahead_bytes = min(ahead_bytes, other.budget_bytes)
    return other == dataclasses.replace(
        kept,
        budget_bytes=other.budget_bytes,
        low_bytes=other.low_bytes,
        ahead_bytes=ahead_bytes,
    )


def refuse_without_budget(
    policy: str | None,
    neighbors: Neighbors,
    policy_name: str = "eviction",
    why: str = "",
    *,
    possible: bool = True,
) -> None:
    """Raise `ConfigurationError` for what needs a budget, where there is none.

    Parameters
    ----------
    policy, neighbors : optional
        As in `budget_for`.
    policy_name : str
        Likewise.
    why : str
        Why there is none, where that was not asked for.
    possible : bool
        The device could keep one.
    """
    without = f"without a budget ({why})" if why else "without a budget"
    if policy is not None:
        raise ConfigurationError(
            f"{policy_name}={shown(policy)} {without}: "
            + _remedy("the kernel driver evicts in an order of its own", possible=possible)
        )
    if neighbors is not None:
        raise ConfigurationError(
            f"neighbors={shown(neighbors)} {without}: "
            + _remedy("the kernel driver evicts to the host", possible=possible)
        )


def _remedy(since: str, *, possible: bool) -> str:
    return f"give device_budget too, since {since}" if possible else "leave it out"


def no_automatic_budget(
    total_bytes: int, *, oversubscribable: Availability = _OVERSUBSCRIBABLE
) -> str:
    """Return why a device has no budget by default; empty where it has. As `budget_for`.

    Examples
    --------
    >>> no_automatic_budget(80 << 30)
    ''
    >>> no_automatic_budget(8 << 20)
    'the device has no 8.00 MiB for one'
    """
    if not oversubscribable:
        return oversubscribable.reason
    if auto_bytes(total_bytes) < LEAST_BUDGET_BYTES:
        return f"the device has no {format_bytes(LEAST_BUDGET_BYTES)} for one"
    return ""


def refuse_larger(budget_bytes: int, total_bytes: int) -> None:
    """Raise `ConfigurationError` for a budget that is larger than the device."""
    if budget_bytes > total_bytes:
        raise ConfigurationError(
            f"device_budget is {format_bytes(budget_bytes)}, the device has "
            f"{format_bytes(total_bytes)}: give that or less"
        )
