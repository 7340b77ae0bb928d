# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The report of the doctor: plain frozen values, printed by `rmm_uvm.cli.doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rmm_uvm.doctor.facts import BoardFacts, DeviceFacts, Feature
from rmm_uvm.doctor.topology import Topology
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.support.driver_names import simulated_bytes

__all__ = ["DoctorReport", "Feature", "PoolPlan"]


@dataclass(frozen=True)
class PoolPlan:
    """The pool that `rmm_uvm.reinitialize` would install on one device by default.

    Attributes
    ----------
    device : int
        CUDA device number.
    sizes : mapping of str to int
        Sizes in bytes, by name.
    reason : str
        What decided the largest of them, or why there are none.
    """

    device: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class DoctorReport:
    """The state of a machine, as far as rmm-uvm depends on it.

    Attributes
    ----------
    versions : mapping of str to str
        Versions of the packages, the driver and CUDA.
    devices : tuple of DeviceFacts
        Empty if there is none; `devices_reason` then says why.
    features : tuple of Feature
        The first is the managed pool itself, on which all others build.
    host_memory : HostMemory or None
        None if it cannot be told; `host_memory_reason` then says why.
    plans : tuple of PoolPlan
        One for each device.
    topology : Topology
        Which devices are neighbours.
    extras : tuple of Feature
        For each extra of rmm-uvm, whether the packages that it needs are there.
    harvest_board : BoardFacts
        Who offers and who holds idle memory of which device.
    driver_setting : str
        What ``RMM_UVM_DRIVER`` says, "" where it is not set.
    settings_reason : str
        Why a variable ``RMM_UVM_*`` cannot be used, "" where all can; of `rmm_uvm.cli.doctor`.
    software_reason : str
        What is wrong with the packages, so that not even a simulated device has a pool; "" if
        nothing is.
    simulated_features : tuple of Feature
        What works on the simulated device that `driver_setting` asks for; empty where it asks for
        none, or none can be had. Then `features` are those of GPUs, which nobody asked for.
    switched_off : bool
        ``RMM_UVM=off`` keeps everything from being installed; what could be is told all the same.
    unknown_variables : mapping of str to str
        Variables ``RMM_UVM_*`` that nothing reads, each with the nearest that is read, "" where
        none is near.
    """

    versions: Mapping[str, str]
    devices: tuple[DeviceFacts, ...]
    features: tuple[Feature, ...]
    host_memory: HostMemory | None
    devices_reason: str = ""
    host_memory_reason: str = ""
    plans: tuple[PoolPlan, ...] = ()
    topology: Topology = field(default_factory=Topology)
    extras: tuple[Feature, ...] = ()
    harvest_board: BoardFacts = field(default_factory=lambda: BoardFacts("not looked for"))
    driver_setting: str = ""
    settings_reason: str = ""
    software_reason: str = ""
    simulated_features: tuple[Feature, ...] = ()
    switched_off: bool = False
    unknown_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_installable(self) -> bool:
        """Whether a managed pool could be installed: here, or on the simulated device asked for."""
        if self.driver_reason or self.settings_reason:
            return False
        if self.simulated_bytes is not None:
            return not self.software_reason
        return self.feature("managed_pool").available

    @property
    def simulated_bytes(self) -> int | None:
        """Memory of the simulated device that `driver_setting` names; None for the GPU."""
        return None if self.driver_reason else simulated_bytes(self._driver, "")

    @property
    def driver_reason(self) -> str:
        """Why `driver_setting` cannot be used; empty if it can."""
        try:
            simulated_bytes(self._driver, f"RMM_UVM_DRIVER={self.driver_setting}")
        except ConfigurationError as error:
            return str(error)
        return ""

    @property
    def _driver(self) -> str:
        return self.driver_setting or "cuda"

    def feature(self, name: str) -> Feature:
        """Return a feature by name.

        Raises
        ------
        KeyError
            If there is no such feature.
        """
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as nested dictionaries, ready for JSON."""
        return {"is_installable": self.is_installable, **asdict(self)}
