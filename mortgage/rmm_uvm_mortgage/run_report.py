# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of one run on one memory: plain values, to JSON and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rmm_uvm_mortgage.fit import SEARCH_STAGE
from rmm_uvm_mortgage.result import PipelineResult, StageOutOfMemory, StageTiming
from rmm_uvm_mortgage.shadow.stages import StageReport
from rmm_uvm_mortgage.train import ModelQuality


@dataclass(frozen=True, slots=True)
class StageTotals:
    """One stage over all parts.

    Parameters
    ----------
    name : str
        Name of the stage.
    runs : int
        How often it ran.
    wall_seconds : float
        Wall time of all runs together; on a simulated device that of pandas and XGBoost on the CPU.
    modelled_seconds : float
        Modelled time of migration and faults of all runs together; 0.0 on a GPU.
    peak_bytes : int
        Largest footprint in any run.
    host_to_device_bytes, device_to_host_bytes : int
        Bytes that migrated, all runs together.
    upstream_allocations : int
        Calls of cudaMalloc or cudaMallocManaged by the chain; 0 on a GPU, where they are not
        counted. XGBoost's are not among them.
    xgboost_peak_bytes : int
        Most that XGBoost holds by cudaMalloc, beside the footprint; 0 on a GPU, not counted there.
    """

    name: str
    runs: int
    wall_seconds: float
    modelled_seconds: float
    peak_bytes: int
    host_to_device_bytes: int
    device_to_host_bytes: int
    upstream_allocations: int = 0
    xgboost_peak_bytes: int = 0

    def oversubscription_factor(self, capacity_bytes: int) -> float:
        """Return peak footprint over capacity."""
        return self.peak_bytes / capacity_bytes if capacity_bytes else 0.0


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run on one memory.

    Parameters
    ----------
    memory : str
        Name of the memory.
    chain : str
        Its resources, outermost first.
    simulated : bool
        Whether the device is simulated.
    device_name : str
        Of the device.
    capacity_bytes : int
        Device memory.
    stages : tuple of StageTotals
        In order of their first run.
    pipeline : PipelineResult
        What was computed.
    largest_training_rows : int or None
        Most rows that PREP and TRAIN could take; None if not looked for.
    features_against_pandas : str or None
        How the features compare with plain pandas: "identical", "equal to 1e-6", or the first
        difference; None if not compared.
    timeline : dict
        See `rmm_uvm_mortgage.timeline.RunTimeline.to_json`.
    """

    memory: str
    chain: str
    simulated: bool
    device_name: str
    capacity_bytes: int
    stages: tuple[StageTotals, ...]
    pipeline: PipelineResult
    largest_training_rows: int | None = None
    features_against_pandas: str | None = None
    timeline: dict[str, Any] = field(default_factory=dict)

    @property
    def peak_bytes(self) -> int:
        """Largest footprint of all stages."""
        return max((stage.peak_bytes for stage in self.stages), default=0)

    @property
    def oversubscription_factor(self) -> float:
        """Largest footprint over capacity."""
        return self.peak_bytes / self.capacity_bytes if self.capacity_bytes else 0.0

    @property
    def modelled_seconds(self) -> float:
        """Modelled time of all stages; the search for a training set is no part of the job."""
        return sum(stage.modelled_seconds for stage in self._job)

    @property
    def migrated_bytes(self) -> tuple[int, int]:
        """Bytes that migrated in the same stages: host to device, device to host."""
        return (
            sum(stage.host_to_device_bytes for stage in self._job),
            sum(stage.device_to_host_bytes for stage in self._job),
        )

    @property
    def _job(self) -> list[StageTotals]:
        return [stage for stage in self.stages if stage.name != SEARCH_STAGE]

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers, derived figures included."""
        plain = dataclasses.asdict(self)
        for stage, figures in zip(plain["stages"], self.stages, strict=True):
            factor = figures.oversubscription_factor(self.capacity_bytes)
            stage["oversubscription_factor"] = round(factor, 4)
        plain["peak_bytes"] = self.peak_bytes
        plain["oversubscription_factor"] = round(self.oversubscription_factor, 4)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> RunReport:
        """Return the report that `to_json` was called on."""
        values = _only_fields(cls, plain)
        values["stages"] = tuple(
            StageTotals(**_only_fields(StageTotals, stage)) for stage in plain["stages"]
        )
        values["pipeline"] = _pipeline_result(plain["pipeline"])
        return cls(**values)


def merge_stages(
    clocked: Sequence[StageTiming],
    metered: Iterable[StageReport],
    upstream_allocations: Mapping[str, int] | None = None,
    xgboost_peak_bytes: Mapping[str, int] | None = None,
) -> tuple[StageTotals, ...]:
    """Put together what was measured of each stage, over all its runs.

    Parameters
    ----------
    clocked : sequence of StageTiming
        Wall time, in order of the first run.
    metered : iterable of StageReport
        Memory, one report for each run.
    upstream_allocations, xgboost_peak_bytes : mapping of str to int, or None
        By stage; missing ones are 0.
    """
    calls, xgboost = upstream_allocations or {}, xgboost_peak_bytes or {}
    reports: dict[str, list[StageReport]] = {}
    for report in metered:
        reports.setdefault(report.name, []).append(report)
    return tuple(
        StageTotals(
            name=stage.name,
            runs=stage.runs,
            wall_seconds=stage.wall_seconds,
            modelled_seconds=sum(r.modelled_seconds for r in reports.get(stage.name, ())),
            peak_bytes=max((r.peak_bytes for r in reports.get(stage.name, ())), default=0),
            host_to_device_bytes=sum(r.host_to_device_bytes for r in reports.get(stage.name, ())),
            device_to_host_bytes=sum(r.device_to_host_bytes for r in reports.get(stage.name, ())),
            upstream_allocations=calls.get(stage.name, 0),
            xgboost_peak_bytes=xgboost.get(stage.name, 0),
        )
        for stage in clocked
    )


def _pipeline_result(plain: Mapping[str, Any]) -> PipelineResult:
    values = dict(plain)
    values["parts"] = tuple(plain["parts"])
    values["stages"] = tuple(StageTiming(**stage) for stage in plain["stages"])
    if plain["quality"] is not None:
        values["quality"] = ModelQuality(**plain["quality"])
    if plain["out_of_memory"] is not None:
        values["out_of_memory"] = StageOutOfMemory(**plain["out_of_memory"])
    return PipelineResult(**values)


def _only_fields(cls: Any, plain: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in dataclasses.fields(cls)}
    return {name: value for name, value in plain.items() if name in names}
