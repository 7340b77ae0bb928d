# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The shadow engine on a simulated device, XGBoost's own memory included.

XGBoost trains on the CPU, for real. What it would take by cudaMalloc on a GPU is allocated on the
simulated device meanwhile: it evicts managed pages, and it can run out.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from rmm_uvm.mr import SimulatedCudaMemoryResource
from rmm_uvm.support.units import format_bytes
from rmm_uvm_mortgage.memory import Chain, tear_down_pool
from rmm_uvm_mortgage.shadow.engine import ShadowEngine
from rmm_uvm_mortgage.shadow.frame import ShadowFrame
from rmm_uvm_mortgage.timeline import SampledDevice, SampledResource
from rmm_uvm_mortgage.train import PARAMETERS
from rmm_uvm_mortgage.xgboost_memory import SKETCH_FREE_FRACTION, TrainingShape, training_shape

if TYPE_CHECKING:
    import xgboost as xgb

    from rmm_uvm.drivers import SimulatedDevice


class CudaMallocBlocks:
    """The memory that XGBoost holds on the simulated device; it is freed with this object.

    Parameters
    ----------
    resource : SimulatedCudaMemoryResource
        The device's cudaMalloc.
    """

    def __init__(self, resource: SimulatedCudaMemoryResource) -> None:
        self._resource = resource
        self._blocks: list[tuple[int, int]] = []
        self.held_bytes = 0

    def take(self, nbytes: int) -> None:
        """Allocate `nbytes`, > 0.

        Raises
        ------
        MemoryError
            The device has no room, even with all managed pages evicted.
        """
        self._blocks.append((int(self._resource.allocate(nbytes)), nbytes))
        self.held_bytes += nbytes

    def free(self) -> None:
        """Free everything."""
        while self._blocks:
            self._resource.deallocate(*self._blocks.pop())
        self.held_bytes = 0

    def __del__(self) -> None:
        self.free()


class XGBoostShadow:
    """Takes XGBoost's device memory in XGBoost's order; a `StageObserver`.

    Parameters
    ----------
    device : SimulatedDevice
        Where.
    changed : callable
        Called after every change, for whoever records levels.

    Attributes
    ----------
    peak_bytes : dict of str to int
        Most that XGBoost held in each stage, in bytes.
    """

    def __init__(self, device: SimulatedDevice, changed: Callable[[], None]) -> None:
        self._device = device
        self._resource = SimulatedCudaMemoryResource(device)
        self._changed = changed
        self._held: list[CudaMallocBlocks] = []
        self._stage = ""
        self.peak_bytes: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """Let what is taken count for a stage."""
        self._stage = name
        self._note_peak()

    def end(self, name: str) -> None:
        """Let what is taken count for no stage."""
        del name
        self._stage = ""

    def _note_peak(self) -> None:
        self._held = [blocks for blocks in self._held if blocks.held_bytes]
        held_bytes = sum(blocks.held_bytes for blocks in self._held)
        if held_bytes and self._stage:
            known_bytes = self.peak_bytes.get(self._stage, 0)
            self.peak_bytes[self._stage] = max(known_bytes, held_bytes)

    def make_matrix(self, shape: TrainingShape) -> CudaMallocBlocks:
        """Allocate a matrix; its memory lives as long as the result.

        Raises
        ------
        MemoryError
            The device cannot hold it.
        """
        return self._take_all(shape.matrix_bytes)

    def train(self, shape: TrainingShape) -> None:
        """Allocate and free what building trees takes.

        Raises
        ------
        MemoryError
            The device cannot hold it.
        """
        free_bytes, _ = self._device.memory()
        batch_bytes = min(shape.sketch_bytes, int(free_bytes * SKETCH_FREE_FRACTION))
        if batch_bytes > 0:
            self._take_all({"sketch": batch_bytes}).free()
        self._take_all(shape.training_bytes).free()
        self._changed()

    def _take_all(self, sizes: Mapping[str, int]) -> CudaMallocBlocks:
        """Allocate buffers; none is left when one cannot be had."""
        blocks = CudaMallocBlocks(self._resource)
        self._held.append(blocks)
        for what, nbytes in sizes.items():
            try:
                blocks.take(nbytes)
            except MemoryError as error:
                blocks.free()
                raise MemoryError(
                    f"XGBoost's cudaMalloc of {format_bytes(nbytes)} ({what}) failed"
                ) from error
            self._note_peak()
            self._changed()
        return blocks


class SimulatedEngine(ShadowEngine):
    """Runs the pipeline with pandas and XGBoost on the CPU, and shadows both on a device.

    Parameters
    ----------
    chain : Chain
        From `rmm_uvm_mortgage.memory.simulated_chain`.
    changed : callable
        Called before every allocation, after every access of a kernel, and after every change of
        XGBoost's memory, for whoever records levels.

    Attributes
    ----------
    xgboost : XGBoostShadow
        Takes what XGBoost would.
    last_shape : TrainingShape or None
        Of the last training set that PREP converted, or tried to.
    """

    name = "pandas, shadowing cuDF"

    def __init__(self, chain: Chain, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        driver = cast("SimulatedDevice", chain.driver)  # simulated_chain made it
        device = SampledDevice(driver, changed, migrates=chain.memory.managed)
        super().__init__(SampledResource(chain.resource, changed), device)
        self.chain = chain
        self.xgboost = XGBoostShadow(driver, changed)
        self.last_shape: TrainingShape | None = None
        self._shapes: weakref.WeakKeyDictionary[xgb.DMatrix, TrainingShape]
        self._shapes = weakref.WeakKeyDictionary()

    def tear_down_pool(self) -> None:
        """Finalise the pool and allocate by cudaMalloc from here on."""
        tear_down_pool(self.chain)
        self._enactor.resource = SampledResource(self.chain.resource, self._changed)
        gc.collect()

    def training_matrix(
        self, features: ShadowFrame, label: ShadowFrame, missing: float
    ) -> xgb.DMatrix:
        """Build XGBoost's matrix on the host, and take its memory on the device."""
        shape = self.last_shape = training_shape(features.values, PARAMETERS["max_depth"])
        blocks = self.xgboost.make_matrix(shape)
        matrix = super().training_matrix(features, label, missing)
        self._shapes[matrix] = shape
        weakref.finalize(matrix, blocks.free)
        return matrix

    def train(self, parameters: Mapping[str, Any], matrix: xgb.DMatrix, rounds: int) -> xgb.Booster:
        """Train on the CPU, after taking and freeing the device memory that a GPU would need."""
        self.xgboost.train(self._shapes[matrix])
        return super().train(parameters, matrix, rounds)
