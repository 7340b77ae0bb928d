# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An engine over the memory of the process it is made in, and what measures it there.

On a simulated device pandas and XGBoost compute, and device memory is taken from the installed
pool as cuDF would. On a GPU cuDF allocates from RMM's current resource, which is that pool.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.off_switch import OFF, is_off
from rmm_uvm_mortgage.engines.base import Engine
from rmm_uvm_mortgage.memory import Chain, find_memory
from rmm_uvm_mortgage.shadow.frame import ShadowFrame
from rmm_uvm_mortgage.shadow.stages import (
    CountingDevice,
    Footprint,
    FootprintSource,
    MigrationCounters,
    PoolFootprint,
)
from rmm_uvm_mortgage.simulated_engine import CudaMallocBlocks, SimulatedEngine
from rmm_uvm_mortgage.train import PARAMETERS
from rmm_uvm_mortgage.xgboost_memory import training_shape

if TYPE_CHECKING:
    from rmm_uvm.drivers import UvmDriver
    from rmm_uvm.pool.installation import DeviceInstallation

_WAYS_TO_A_POOL = (
    "start workers with --preload rmm_uvm.dask, or call client.run(rmm_uvm.reinitialize)"
)


def no_pool() -> str:
    """Say that this process has no pool of rmm_uvm, and what to do."""
    return f"has no pool of rmm_uvm: {OFF if is_off() else _WAYS_TO_A_POOL}"


class WorkerEngine(ABC):
    """An engine, its footprint, and the counters of its device.

    What XGBoost holds is taken by itself on a GPU; an engine without one does it in its place.

    Attributes
    ----------
    engine : Engine
        Computes.
    footprint : FootprintSource
        Live bytes of the process' pool.
    counters : CountingDevice
        Bytes that migrated.

    Notes
    -----
    Not thread-safe, as engines are.
    """

    engine: Engine[Any, Any]
    footprint: FootprintSource
    counters: CountingDevice

    @abstractmethod
    def partition(self, frame: Any) -> Any:
        """Return a frame as XGBoost takes it; the frame's device memory lives as long as it."""

    def take_training_memory(self, features: Any) -> None:  # noqa: B027 - see the class
        """Take what XGBoost will hold on the device, where XGBoost itself does not.

        Parameters
        ----------
        features : pandas.DataFrame or cudf.DataFrame
            From `partition`.

        Raises
        ------
        MemoryError
            The device cannot hold it.
        """

    def free_training_memory(self) -> None:  # noqa: B027
        """Free it again."""

    def xgboost_peak_bytes(self) -> Mapping[str, int]:
        """Return the most that XGBoost held in each stage since the last call, where known."""
        return {}


class SimulatedWorkerEngine(WorkerEngine):
    """Over a managed pool on a simulated device.

    Parameters
    ----------
    installed : DeviceInstallation
        The pool.
    """

    engine: SimulatedEngine

    def __init__(self, installed: DeviceInstallation) -> None:
        driver: Any = installed.managed_mr.driver
        self.engine = SimulatedEngine(Chain(find_memory("managed"), installed.installed_mr, driver))
        self.engine.observers.append(self.engine.xgboost)
        self.footprint = PoolFootprint(installed.managed_mr)
        self.counters = driver
        self._matrices: list[CudaMallocBlocks] = []

    def partition(self, frame: Any) -> Any:
        """Return the frame's values; its device columns go when they do."""
        shadow = cast("ShadowFrame", frame)
        buffers: list[Any] = [shadow.columns, shadow.labels]
        # At exit the pool may be gone before.
        weakref.finalize(shadow.values, buffers.clear).atexit = False
        return shadow.values

    def take_training_memory(self, features: Any) -> None:
        """Take the matrix, then take and free what building trees needs."""
        shape = training_shape(features, PARAMETERS["max_depth"])
        self._matrices.append(self.engine.xgboost.make_matrix(shape))
        self.engine.xgboost.train(shape)

    def free_training_memory(self) -> None:
        """Free the matrices."""
        while self._matrices:
            self._matrices.pop().free()

    def xgboost_peak_bytes(self) -> Mapping[str, int]:
        """Return the peaks by stage, and begin anew."""
        peaks = dict(self.engine.xgboost.peak_bytes)
        self.engine.xgboost.peak_bytes.clear()
        return peaks


class CudfWorkerEngine(WorkerEngine):
    """cuDF, over RMM's current resource.

    Parameters
    ----------
    driver : UvmDriver
        The GPU.
    footprint : FootprintSource
        Of the current resource.
    """

    def __init__(self, driver: UvmDriver, footprint: FootprintSource) -> None:
        from rmm_uvm_mortgage.engines import make_engine

        self.engine = make_engine("cudf")
        self.footprint = footprint
        self.counters = MigrationCounters(driver)

    def partition(self, frame: Any) -> Any:
        """Return the frame: XGBoost reads cuDF's."""
        return frame


def worker_engine(*, own_pool: bool = True) -> WorkerEngine:
    """Make the engine that fits what is installed in this process.

    Parameters
    ----------
    own_pool : bool
        Whether it must be a pool that `rmm_uvm.reinitialize` installed. False takes any resource
        on a GPU, without a footprint: for comparisons.

    Raises
    ------
    AvailabilityError
        There is no such pool, or cuDF cannot be used.
    DriverError
        There is no GPU.
    """
    from rmm_uvm.pool.install import current_installation
    from rmm_uvm_mortgage.run import quiet_rmm

    quiet_rmm()
    installation = current_installation()
    if installation is None or not installation.devices:
        if own_pool:
            raise AvailabilityError(f"this process {no_pool()}")
        from rmm_uvm.drivers import cuda_driver

        return CudfWorkerEngine(cuda_driver(), Footprint())
    installed = installation.devices[0]
    if installed.info.simulated:
        return SimulatedWorkerEngine(installed)
    return CudfWorkerEngine(installed.managed_mr.driver, PoolFootprint(installed.managed_mr))
