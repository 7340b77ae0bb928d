# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from enum import IntEnum
from typing import TypedDict, type_check_only

from typing_extensions import disjoint_base

from rmm_uvm._lib.driver import UvmDriver

@type_check_only
class PrefetchStatistics(TypedDict):
    slab_prefetched_bytes: int
    prefetch_calls: int
    prefetched_bytes: int
    discard_calls: int
    discarded_bytes: int
    failed_calls: int
    last_failure: str
    skipped: dict[str, int]

class prefetch_mode(IntEnum):  # noqa: N801 - the name in C++
    automatic = ...
    always = ...
    never = ...

@disjoint_base
class ManagedAccount:
    def __init__(self, limit_bytes: int | None = None) -> None: ...
    @property
    def limit_bytes(self) -> int | None: ...
    @limit_bytes.setter
    def limit_bytes(self, value: int | None) -> None: ...
    @property
    def used_bytes(self) -> int: ...

@disjoint_base
class Prefetcher:
    def __init__(self, driver: UvmDriver) -> None: ...
    @property
    def driver(self) -> UvmDriver: ...
    @property
    def epoch(self) -> int: ...
    @property
    def slab_bytes(self) -> int: ...
    def statistics(self) -> PrefetchStatistics: ...
