# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from typing_extensions import disjoint_base

from rmm_uvm._lib.sim import SimulatedDevice
from rmm_uvm.support.settings import PrefetchMode

EVENT_BYTES: int
POINT_BYTES: int

@disjoint_base
class Replayer:
    def __init__(
        self,
        device: SimulatedDevice,
        slabs: Sequence[tuple[int, int]],
        *,
        prefetch: PrefetchMode,
        discard_dead: bool,
        stage_count: int,
        last_time_ns: int,
    ) -> None: ...
    def feed(self, events: bytes | memoryview | NDArray[Any]) -> bool: ...
    def finish(self) -> None: ...
    @property
    def replayed(self) -> int: ...
    @property
    def peak_live_bytes(self) -> int: ...
    def out_of_memory(self) -> dict[str, int] | None: ...
    def stages(self) -> list[dict[str, float]]: ...
    def points(self) -> bytes: ...
    def statistics(self) -> dict[str, int]: ...
