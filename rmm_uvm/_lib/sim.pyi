# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping, Sequence
from typing import Literal

from typing_extensions import disjoint_base

from rmm_uvm._lib.driver import MemoryObserver, UvmDriver

TOPOLOGIES: tuple[str, ...]

def default_machine() -> dict[str, float]: ...
def default_driver_settings() -> dict[str, int]: ...

@disjoint_base
class SimulatedDevice(UvmDriver):
    def __init__(
        self,
        capacity_bytes: int,
        *,
        host_bytes: int | None = None,
        backing: bool = False,
        concurrent_managed_access: bool = True,
        discard: bool = True,
        counters: bool = True,
        tells_moves: bool = True,
        direct_migration: bool = False,
        integrated: bool = False,
        numa_node: int | None = None,
        device_id: int = 0,
        neighbors: int = 0,
        machine: Mapping[str, float] | None = None,
        driver: Mapping[str, int] | None = None,
        third_tier: Mapping[str, float] | None = None,
    ) -> None: ...
    @property
    def backing(self) -> bool: ...
    def touch(self, address: int, nbytes: int, write: bool = False) -> None: ...
    def cpu_touch(self, address: int, nbytes: int, write: bool = False) -> None: ...
    def compute(self, seconds: float) -> None: ...
    def migrate_beside(self, beside: bool) -> None: ...
    def observe(self, observer: MemoryObserver | None) -> None: ...
    def attach_observer(self, observer: MemoryObserver) -> bool: ...
    def detach_observer(self, observer: MemoryObserver) -> None: ...
    @property
    def observed(self) -> bool: ...
    def resident_bytes(self, address: int, nbytes: int, where: str | int = "device") -> int: ...
    def occupy_neighbor(self, device_id: int, nbytes: int) -> None: ...
    def set_neighbor_load(
        self,
        device_id: int,
        *,
        kernel_fraction: float | None = None,
        memory_fraction: float | None = None,
        link_fraction: float | None = None,
    ) -> None: ...
    def advised(self, address: int) -> tuple[bool, str]: ...
    def statistics(self) -> dict[str, int]: ...
    def fail_call(
        self,
        call: str,
        code: Literal[
            "out_of_memory", "invalid_value", "not_supported", "driver_error"
        ] = "driver_error",
        skip: int = 0,
    ) -> None: ...
    def cancel_failures(self) -> int: ...
    def end_graphs(self) -> None: ...
    def set_capture_state(
        self, stream: int, state: Literal["none", "capturing", "unknown"]
    ) -> None: ...

@disjoint_base
class NodeModel:
    def __init__(
        self,
        capacity_bytes: int,
        *,
        gpus: int,
        topology: str,
        links: Sequence[int],
        host_bytes: int | None,
        backing: bool,
        discard: bool,
        counters: bool,
        direct_migration: bool,
        places_at_once: bool,
        machine: Mapping[str, float] | None,
        driver: Mapping[str, int] | None,
        third_tier: Mapping[str, float] | None = None,
    ) -> None: ...
    @property
    def devices(self) -> tuple[SimulatedDevice, ...]: ...
    def occupy(self, gpu: int, nbytes: int) -> None: ...
    def synchronize(self) -> float: ...
    def host_traffic(self, gpu: int, to_host: bool) -> tuple[int, float]: ...
    def peer_traffic(self, sender: int, receiver: int) -> tuple[int, float]: ...
