# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol, TypedDict, type_check_only

from typing_extensions import disjoint_base

from rmm_uvm._lib.driver import MemoryObserver, UvmDriver
from rmm_uvm._lib.harvest import HarvestBoard
from rmm_uvm.residency.budget import Budget

@type_check_only
class PrefetchStatistics(TypedDict):
    slab_prefetched_bytes: int
    prefetch_calls: int
    prefetched_bytes: int
    discard_calls: int
    discarded_bytes: int
    undiscarded_bytes: int
    failed_calls: int
    last_failure: str
    skipped: dict[str, int]

@type_check_only
class ResidencyStatistics(TypedDict):
    budget_bytes: int
    budget_changes: int
    unmanaged_bytes: int | None
    hidden_bytes: int
    sharers: int
    resident_bytes: int
    peak_resident_bytes: int
    pinned_bytes: int
    policy: str
    overshoot_bytes: int | None
    peak_overshoot_bytes: int | None
    faulted_bytes: int | None
    faults_unknown: str
    found_bytes: int
    looks: int
    finds_none: str
    evicted_bytes: int
    uncopied_bytes: int
    kept_copy_bytes: int
    copied_early_bytes: int
    dropped_bytes: int
    fetched_bytes: int
    renewed_bytes: int
    undiscarded_bytes: int
    undiscarded_copied_bytes: int
    fetched_ahead_bytes: int
    ahead_used_bytes: int
    ahead_bytes: int
    wanted_bytes: int
    present_bytes: int
    neighbor_bytes: int
    harvested_bytes: int
    peak_harvested_bytes: int
    from_neighbor_bytes: int
    in_place_bytes: int
    copied_beside_bytes: int
    staged_bytes: int
    given_back_bytes: int
    given_back_at_once_bytes: int
    held_back: int
    reclaims: int
    reclaim_wait_seconds: float
    eviction_calls: int
    waits: int
    waited_seconds: float
    waited_for_room_seconds: float
    over_budget: int
    too_large: int
    too_large_bytes: int
    host_read_bytes: int
    unfenced_frees: int
    failed_calls: int
    last_failure: str
    predicted: int
    predictions: int
    foresees: bool
    switched_off: int

@type_check_only
class _Budget(Protocol):
    @property
    def budget_bytes(self) -> int: ...
    @property
    def low_bytes(self) -> int | None: ...
    @property
    def follows(self) -> bool: ...
    @property
    def direct(self) -> bool: ...
    @property
    def piece_bytes(self) -> int | None: ...
    @property
    def fetch_bytes(self) -> int | None: ...
    @property
    def ahead_bytes(self) -> int | None: ...
    @property
    def policy(self) -> str: ...
    @property
    def neighbors(self) -> str | Iterable[int] | None: ...
    def limit_on(self, device_id: int) -> int | None: ...
    @property
    def in_place(self) -> bool: ...
    @property
    def copy_beside(self) -> bool: ...
    @property
    def multipath(self) -> bool: ...
    @property
    def keep_copies(self) -> bool | None: ...
    @property
    def board(self) -> str | None: ...
    @property
    def discard_dead(self) -> bool: ...
    @property
    def rank_dead(self) -> bool: ...
    @property
    def fetch(self) -> bool: ...
    @property
    def ahead(self) -> bool: ...
    @property
    def background(self) -> bool: ...

class prefetch_mode(IntEnum):  # noqa: N801 - the name in C++
    automatic = ...
    always = ...
    never = ...

@disjoint_base
class ManagedResidency:
    too_large_told: bool
    neighbors: tuple[int, ...]
    refused_neighbors: list[str]
    board: HarvestBoard | None
    board_reason: str
    links_reason: str
    def __init__(self, driver: UvmDriver, budget: _Budget | None = None) -> None: ...
    @property
    def budget(self) -> Budget | None: ...
    @property
    def budget_bytes(self) -> int | None: ...
    def set_budget(self, budget: int | str | float | Budget | None) -> None: ...
    def start_budget(self, budget: _Budget) -> None: ...
    def change_budget(self, budget: _Budget) -> bool: ...
    def end_budget(self) -> None: ...
    @property
    def driver(self) -> UvmDriver: ...
    @property
    def epoch(self) -> int: ...
    @property
    def slab_bytes(self) -> int: ...
    def holds(self, address: int) -> bool: ...
    def touch(self, address: int, nbytes: int, owner: int, stream: int = 0) -> None: ...
    def touch_all(
        self, uses: Iterable[tuple[int, int, int]], stream: int = 0, only_read: bool = False
    ) -> None: ...
    def note_made(self, uses: Iterable[tuple[int, int, int]]) -> None: ...
    def attach_observer(self, observer: MemoryObserver) -> bool: ...
    def detach_observer(self, observer: MemoryObserver) -> None: ...
    @property
    def observed(self) -> bool: ...
    @property
    def all_present(self) -> bool: ...
    def confirm_present(self, stream: int = 0) -> bool: ...
    def confirmed_present(self) -> bool: ...
    def bring(self, address: int, nbytes: int, stream: int = 0) -> None: ...
    def evict(self, address: int, nbytes: int, stream: int = 0) -> int: ...
    def advise(
        self,
        address: int,
        nbytes: int,
        read_mostly: bool | None = None,
        preferred: str | None = None,
    ) -> tuple[int, int, str]: ...
    @property
    def advised_bytes(self) -> int: ...
    def pin(self, address: int, nbytes: int) -> None: ...
    def unpin(self, address: int, nbytes: int) -> None: ...
    @property
    def keeps_budget(self) -> bool: ...
    def flush(self) -> None: ...
    def run_pending(self) -> None: ...
    def run_pending_piece(self) -> bool: ...
    def take_live_blocks(self, begins: bool) -> tuple[int, int]: ...
    def residency(self) -> ResidencyStatistics | None: ...
    def statistics(self) -> PrefetchStatistics: ...

Prefetcher = ManagedResidency
