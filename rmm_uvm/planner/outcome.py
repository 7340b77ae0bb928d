# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The result of a plan, as frozen values: the workload, every card, and the advice.

Does not cover finding it out (`rmm_uvm.planner.planning`) and showing it (`text`, `page`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rmm_uvm.planner.request import Options
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.planner.workload.result import ReplayResult
from rmm_uvm.planner.workload.working_set import WorkingSet
from rmm_uvm.support.machine_profile import ThirdTier
from rmm_uvm.support.settings import PrefetchMode

__all__ = [
    "AnnouncedWay",
    "Answer",
    "Card",
    "Helps",
    "MachineFacts",
    "PlanFigures",
    "Settings",
    "Variant",
]


@dataclass(frozen=True)
class MachineFacts:
    """The machine that is simulated, as a plan names it.

    Attributes
    ----------
    name, gpu, link : str
        Of its machine profile.
    measured : bool
        Its constants were measured by this project, or by the user; else they are published ones.
    label : str
        What its constants are; unless that is "measured", it stands wherever the name does.
    third_tier : ThirdTier or None
        What lies behind the host's memory of one process, where that is limited.
    """

    name: str
    gpu: str
    link: str
    measured: bool
    label: str
    third_tier: ThirdTier | None = None

    def __str__(self) -> str:
        return self.name if self.label == "measured" else f"{self.name} ({self.label})"


@dataclass(frozen=True)
class Variant:
    """One way to run the workload on one card, and what it would come to.

    Attributes
    ----------
    options : Options
        PrefetchMode mode, threshold of the kernel driver, policy.
    result : ReplayResult
        What its replay saw.
    predicted_seconds : float or None
        Time that the workload would take; None if it would run out of memory.
    slowdown : float or None
        That, over its time with room for everything.
    """

    options: Options
    result: ReplayResult
    predicted_seconds: float | None
    slowdown: float | None


@dataclass(frozen=True)
class AnnouncedWay:
    """One way to run a program that announces its uses, tried with the pool itself.

    Attributes
    ----------
    prefetch : str
        When allocations are prefetched.
    eviction : str or None
        The policy of a budget; None for none: the kernel driver evicts.
    budget_bytes : int or None
        The budget.
    initial_bytes, maximum_bytes : int
        Sizes of the pool, bytes.
    sized : bool
        They are advised ones, and not those that a pool has by default.
    driver_seconds, predicted_seconds, slowdown : float or None
        Driver work that is waited for, time of the workload, and that over its time with room for
        everything; None where it was not tried or runs out of memory.
    to_device_bytes, to_host_bytes : int
        Copied each way.
    unannounced_seconds : float or None
        Driver work that is waited for where nobody announces a use; None where it was not tried.
    """

    prefetch: PrefetchMode
    eviction: str | None
    budget_bytes: int | None
    initial_bytes: int
    maximum_bytes: int
    sized: bool
    driver_seconds: float | None = None
    predicted_seconds: float | None = None
    slowdown: float | None = None
    to_device_bytes: int = 0
    to_host_bytes: int = 0
    unannounced_seconds: float | None = None

    def in_sizes(self, initial_bytes: int, maximum_bytes: int) -> AnnouncedWay:
        """Return the same way with sizes that are advised, not tried yet."""
        return AnnouncedWay(
            self.prefetch,
            self.eviction,
            self.budget_bytes,
            initial_bytes,
            maximum_bytes,
            sized=True,
        )


@dataclass(frozen=True)
class Settings:
    """Settings for one card, each with its reason; sizes in bytes.

    Attributes
    ----------
    initial_pool_bytes, maximum_pool_bytes : int or None
        First slab, and where `MemoryError` begins; None to leave the defaults.
    prefetch : str
        When allocations are prefetched.
    ipc_pool_bytes : int
        cudaMalloc memory through which workers exchange results; 0 for none.
    host_sharers : int
        Processes that share the host's memory.
    driver_prefetch_threshold : int or None
        To set in the kernel driver, percent; None to leave it.
    enough_bytes : int
        Device memory with which the workload takes at most 1.05 times as long as on an empty
        card; all of the managed capacity if less does not do. The rest is free for others, and a
        budget of as much keeps to it.
    parts : int
        Into how many parts to split the input; 1 to leave it whole.
    reasons : tuple of (str, str)
        Setting and reason, in the order in which they are shown.
    eviction : str or None
        Which live blocks leave first under the budget; None to set no budget.
    device_budget_bytes : int or None
        The budget to set; None to set none.
    """

    initial_pool_bytes: int | None
    maximum_pool_bytes: int | None
    prefetch: str
    ipc_pool_bytes: int
    host_sharers: int
    driver_prefetch_threshold: int | None
    enough_bytes: int
    parts: int
    reasons: tuple[tuple[str, str], ...]
    eviction: str | None = None
    device_budget_bytes: int | None = None

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `rmm_uvm.reinitialize` that these settings are."""
        keywords: dict[str, Any] = {}
        if self.initial_pool_bytes is not None:
            keywords["initial_pool_size"] = self.initial_pool_bytes
        if self.maximum_pool_bytes is not None:
            keywords["maximum_pool_size"] = self.maximum_pool_bytes
        keywords["prefetch"] = self.prefetch
        if self.device_budget_bytes is not None:
            keywords["device_budget"] = self.device_budget_bytes
            keywords["eviction"] = self.eviction
        if self.ipc_pool_bytes:
            keywords["ipc_pool_size"] = self.ipc_pool_bytes
        if self.host_sharers > 1:
            keywords["host_sharers"] = self.host_sharers
        return keywords


@dataclass(frozen=True)
class Answer:
    """A question in words, whether its answer is yes, and the answer in words with figures."""

    question: str
    verdict: Literal["yes", "at a price", "no"]
    text: str


@dataclass(frozen=True)
class Card:
    """The workload on one card.

    Attributes
    ----------
    device_bytes : int
        Memory of the card.
    capacity_bytes : int
        Managed capacity: that, less the IPC pool.
    oversubscription_factor : float
        Peak live bytes over the managed capacity.
    working_set_factor : float
        Working set over the managed capacity.
    variants : tuple of Variant
        All that were replayed; the defaults first.
    advised : Variant
        The one of them that is advised; never slower than the defaults.
    host_bytes : int
        Host memory that the defaults need, all workers of the host together.
    settings : Settings
        What to set.
    splitting, more_data : Answer
        "Can I avoid splitting my input?" and "Can I train on more data?"
    ways : tuple of AnnouncedWay
        For a program that announces its uses: all that were tried, the defaults first. What is set
        is then the fastest of them; answers and `advised` rest on replays, where nothing is
        announced. Empty if not asked for, or if the recording is too long.
    pool_out_of_memory : bool
        Tried through RMM's pool, the workload runs out of memory in every way, whatever replays
        at the recorded addresses say.
    """

    device_bytes: int
    capacity_bytes: int
    oversubscription_factor: float
    working_set_factor: float
    variants: tuple[Variant, ...]
    advised: Variant
    host_bytes: int
    settings: Settings
    splitting: Answer
    more_data: Answer
    ways: tuple[AnnouncedWay, ...] = ()
    pool_out_of_memory: bool = False

    @property
    def defaults(self) -> Variant:
        """The way that runs on this card where nothing is set."""
        return self.variants[0]


@dataclass(frozen=True)
class Helps:
    """From which card to which the workload gains most, and where gains end; bytes.

    Attributes
    ----------
    from_bytes, to_bytes : int
        The step between neighbouring cards that saves most time.
    from_slowdown : float or None
        On the smaller card; None if it runs out of memory there.
    to_slowdown : float or None
        On the larger one.
    enough_bytes : int or None
        The smallest card on which the workload takes at most 1.05 times its time with room for
        everything; None if it is none of them.
    """

    from_bytes: int
    to_bytes: int
    from_slowdown: float | None
    to_slowdown: float | None
    enough_bytes: int | None


@dataclass(frozen=True)
class PlanFigures:
    """Figures of a recorded workload on other cards, without a word or a picture.

    Attributes
    ----------
    workload : Workload
        What was replayed.
    machine : MachineFacts
        Whose links, driver and faults were modelled.
    workers : int
        Processes like the recorded one on a host, each on a card of its own.
    working_set : WorkingSet
        Most bytes touched in a window, and its length.
    fitting_seconds : float
        Predicted time with room for everything.
    host_bytes : int or None
        Host memory for one process; None for as much as it wants.
    enough_bytes, tolerable_bytes : int or None
        Least managed capacity with which the workload takes at most 1.05, and 1.25, times that;
        None if it would not on any card, since the host has too little memory.
    cards : tuple of Card
        In ascending order of size.
    curve : tuple of (int, float or None)
        Managed capacities, bytes, and slowdowns with the defaults, ascending; None for running
        out of memory. More points than there are cards.
    helps : Helps or None
        The step that helps most; None if no step does.
    by_size_class : bool
        The workload had no stages: results have classes of sizes in their place.
    notes : tuple of str
        What to know when reading it.
    """

    workload: Workload
    machine: MachineFacts
    workers: int
    working_set: WorkingSet
    fitting_seconds: float
    host_bytes: int | None
    enough_bytes: int | None
    tolerable_bytes: int | None
    cards: tuple[Card, ...]
    curve: tuple[tuple[int, float | None], ...]
    helps: Helps | None
    by_size_class: bool
    notes: tuple[str, ...]
