# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any, TypedDict, type_check_only

from typing_extensions import disjoint_base

from rmm_uvm._lib.sim import SimulatedDevice
from rmm_uvm.machine.device_info import Availability

@type_check_only
class CauseTotals(TypedDict):
    host_to_device_bytes: dict[str, int]
    device_to_host_bytes: dict[str, int]
    device_to_device_bytes: int
    cpu_faults: int
    gpu_fault_groups: int
    thrashing_bytes: int
    throttling_ns: int
    remote_map_bytes: int
    dropped_records: int
    forgotten_bytes: int

@disjoint_base
class MigrationEvents:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def start(self) -> Availability: ...
    def stop(self) -> None: ...
    def read(self) -> CauseTotals: ...
    def busiest(self, most: int = 10) -> list[tuple[int, int, int]]: ...

def simulated_events(device: SimulatedDevice) -> MigrationEvents: ...
def cupti_events(
    device_ids: Sequence[int], libraries: Sequence[str]
) -> tuple[MigrationEvents | None, Availability]: ...
