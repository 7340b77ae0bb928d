# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from typing import TypeAlias

from typing_extensions import disjoint_base

from rmm_uvm._lib.driver import MemoryObserver, UvmDriver

_Moved: TypeAlias = tuple[int, int, int, int, int, int]
_Stretches: TypeAlias = tuple[int, ...]

@disjoint_base
class LineAccount(MemoryObserver):
    def __init__(self) -> None: ...
    def close(self) -> None: ...
    def report(
        self,
    ) -> tuple[
        list[tuple[str, str, int]],
        list[tuple[tuple[int, ...], int, int, int, _Moved, _Stretches, _Stretches]],
        list[tuple[int, int, int, bool, _Moved]],
        int,
        int,
    ]: ...

@disjoint_base
class MoveWindows:
    def __init__(self, driver: UvmDriver, account: LineAccount) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def refused(self) -> str: ...
    def totals(self) -> tuple[int, int, int, int, int, int]: ...
