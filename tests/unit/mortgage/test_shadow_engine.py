# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The shadow engine: pandas' results, cuDF's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
import pyarrow as pa
import rmm.mr

from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.engines.pandas import PandasEngine
from rmm_uvm_mortgage.etl import STAGES, run_etl
from rmm_uvm_mortgage.files import Part, find_files, make_parts
from rmm_uvm_mortgage.generate import GeneratorConfig, generate
from rmm_uvm_mortgage.shadow.engine import ShadowEngine
from rmm_uvm_mortgage.shadow.frame import ShadowFrame
from rmm_uvm_mortgage.shadow.stages import StageMeter

LOANS = 60


class FakeMemory:
    """Hands out addresses without memory behind them, up to a limit."""

    def __init__(self, limit_bytes: int = 1 << 40) -> None:
        self.live: dict[int, int] = {}
        self.limit_bytes = limit_bytes
        self._next = 1 << 40
        self.resource = rmm.mr.CallbackMemoryResource(self._allocate, self._deallocate)

    def _allocate(self, nbytes: int, stream: object) -> int:
        if self.live_bytes + nbytes > self.limit_bytes:
            raise MemoryError(f"{nbytes} bytes asked for, the limit is {self.limit_bytes}")
        address = self._next
        self._next += -(-nbytes // 256) * 256
        self.live[address] = nbytes
        return address

    def _deallocate(self, address: int, nbytes: int, stream: object) -> None:
        assert self.live.pop(address) == nbytes

    @property
    def live_bytes(self) -> int:
        return sum(self.live.values())


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Part:
    directory: Path = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(loans_per_quarter=LOANS), workers=1)
    files = find_files(directory)
    return make_parts(files, load_domains(files), parts=1)[0]


@pytest.fixture
def memory() -> FakeMemory:
    return FakeMemory()


@pytest.fixture
def engine(memory: FakeMemory) -> ShadowEngine:
    return ShadowEngine(memory.resource)


def frame_of(engine: ShadowEngine, **columns: object) -> ShadowFrame:
    return engine.from_host(pa.table(columns))


def test_etl_gives_the_features_of_pandas(engine: ShadowEngine, part: Part) -> None:
    assert run_etl(engine, part).equals(run_etl(PandasEngine(), part))


def test_etl_leaves_nothing_allocated(engine: ShadowEngine, memory: FakeMemory, part: Part) -> None:
    run_etl(engine, part)
    assert memory.live == {}
    assert engine.footprint.now_bytes == 0
    assert engine.footprint.peak_bytes > 0


def test_etl_reports_every_stage_with_its_peak(engine: ShadowEngine, part: Part) -> None:
    meter = StageMeter(engine.footprint)
    engine.observers.append(meter)
    run_etl(engine, part)
    assert tuple(report.name for report in meter.reports) == STAGES
    for report in meter.reports:
        assert report.peak_bytes >= max(report.begin_bytes, report.end_bytes)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.4, 0.6, 0.8, 0.99])
def test_etl_out_of_memory_leaves_nothing_allocated(part: Part, share: float) -> None:
    roomy = ShadowEngine(FakeMemory().resource)
    meter = StageMeter(roomy.footprint)
    roomy.observers.append(meter)
    run_etl(roomy, part)
    peaks = {report.name: report.peak_bytes for report in meter.reports}
    limit_bytes = int(max(peaks.values()) * share)

    tight = FakeMemory(limit_bytes)
    engine = ShadowEngine(tight.resource)
    meter = StageMeter(engine.footprint)
    engine.observers.append(meter)
    with pytest.raises(MemoryError):
        run_etl(engine, part)
    assert tight.live == {}
    expected = next(name for name, peak in peaks.items() if peak > limit_bytes)
    assert meter.reports[-1].name == expected


def test_select_and_rename_share_columns(engine: ShadowEngine, memory: FakeMemory) -> None:
    frame = frame_of(engine, a=[1, 2], b=[1.0, 2.0])
    before = memory.live_bytes
    other = engine.rename(engine.select(frame, ["b"]), {"b": "c"})
    assert memory.live_bytes == before
    del frame
    assert memory.live_bytes == 16
    assert other.columns["c"].shape.nbytes == 16


def test_drop_frees_a_column_that_nothing_shares(engine: ShadowEngine, memory: FakeMemory) -> None:
    frame = frame_of(engine, a=[1, 2], b=[1.0, 2.0])
    engine.drop(frame, ["a"])
    assert memory.live_bytes == 16


def test_assign_of_new_column_copies_and_of_existing_column_shares(
    engine: ShadowEngine, memory: FakeMemory
) -> None:
    frame = frame_of(engine, a=[1, 2])
    column = engine.column(frame, "a").cast("float64")
    engine.assign(frame, "a", column)
    assert memory.live_bytes == 16
    engine.assign(frame, "b", column)
    assert memory.live_bytes == 32


def test_cast_to_same_type_copies(engine: ShadowEngine, memory: FakeMemory) -> None:
    frame = frame_of(engine, a=[1.0, 2.0])
    column = engine.column(frame, "a").cast("float64")
    assert memory.live_bytes == 32
    assert column.data.device.shape == frame.columns["a"].shape


def test_left_join_matching_all_rows_keeps_integers(engine: ShadowEngine) -> None:
    left = frame_of(engine, k=[1, 2, 2])
    right = frame_of(engine, k=[1, 2], v=pa.array([7, 8], pa.int32()))
    joined = engine.left_join(left, right, on=["k"])
    assert joined.columns["v"].shape.dtype == "int32"
    assert joined.columns["v"].shape.has_mask


def test_left_join_missing_rows_makes_integers_float64(engine: ShadowEngine) -> None:
    left = frame_of(engine, k=[1, 2, 3])
    right = frame_of(engine, k=[1, 2], v=pa.array([7, 8], pa.int32()))
    joined = engine.left_join(left, right, on=["k"])
    assert joined.columns["v"].shape.dtype == "float64"
    assert joined.columns["v"].shape.null_count == 1


def test_filter_keeps_row_labels_with_the_frame(engine: ShadowEngine, memory: FakeMemory) -> None:
    frame = frame_of(engine, a=[1.0, 2.0, 3.0])
    mask = engine.column(frame, "a") > 1
    kept = engine.filter(frame, mask)
    del mask
    assert engine.height(kept) == 2
    assert memory.live_bytes == 24 + 24 + 16  # the column, its frame's labels, the rows kept


def test_date_part_stays_with_its_date_column(engine: ShadowEngine, memory: FakeMemory) -> None:
    dates = pa.array([pd.Timestamp("2001-05-01")], pa.timestamp("ms"))
    frame = frame_of(engine, d=dates)
    first = engine.column(frame, "d").year()
    second = engine.column(frame, "d").year()
    assert first.data.device is second.data.device
    del first, second
    assert memory.live_bytes == 8 + 4


def test_failed_assign_changes_nothing(part: Part) -> None:
    memory = FakeMemory(limit_bytes=40)
    engine = ShadowEngine(memory.resource)
    frame = frame_of(engine, a=[1, 2])
    column = engine.column(frame, "a") + 1
    with pytest.raises(MemoryError):
        engine.assign(frame, "b", column)
    assert engine.column_names(frame) == ["a"]
    assert list(frame.columns) == ["a"]


def test_from_and_to_host_give_the_same_table(engine: ShadowEngine) -> None:
    table = pa.table({"x": pa.array([1.5, 2.5], pa.float32()), "y": pa.array([1, 0], pa.int32())})
    assert engine.to_host(engine.from_host(table)).equals(table)
