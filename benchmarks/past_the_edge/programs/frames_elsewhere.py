# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The loop of `frames.py` where others keep the frames: on the host with Polars, on a Dask worker.

Numbers are those of `frames.py`, so that checksums are equal.
"""

from __future__ import annotations

import gc
from typing import Any

from benchmarks.past_the_edge.programs.frames import (
    KEYS,
    Frames,
    dimension,
    frame_of,
    numbers,
    total_of,
    worked,
)

_OF_SPILLING = 0.6  # of the budget, for what lies between tasks: a task takes as much again


class _Elsewhere:
    """What both have in common: a frame is worked on at its first step.

    Parameters
    ----------
    data_bytes : int
        Of all frames together.
    pieces : int
        Frames.
    budget_bytes : int
        Of device memory.
    """

    STEPS = Frames.STEPS

    def __init__(self, data_bytes: int, pieces: int, budget_bytes: int) -> None:
        self._rows = data_bytes // pieces // Frames.COLUMNS // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._budget_bytes = budget_bytes
        self._found: list[int] = []

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        if step == 0:
            self._found = self._work(piece)
        return self._found[step]

    def _work(self, piece: int) -> list[int]:
        raise NotImplementedError


class FramesByPolars(_Elsewhere):
    """cudf-polars' streaming executor: a query for each frame, which lies in host memory."""

    def make(self) -> None:
        import polars

        from benchmarks.tpch.streaming import streaming_engine

        self._engine = streaming_engine(self._budget_bytes)
        keys = polars.int_range(min(KEYS, self._rows), dtype=polars.Int64, eager=True)
        self._dimension = polars.DataFrame({"key": keys, "worth": keys * 7919 % 10_007}).lazy()
        self._frames = [self._frame(number, len(keys)) for number in range(self._pieces)]

    def drop(self) -> None:
        self._frames, self._dimension = [], None
        self._engine.shutdown()
        gc.collect()

    def _frame(self, number: int, keys: int) -> Any:
        import polars

        first = number * self._rows
        row = polars.int_range(first, first + self._rows, dtype=polars.Int64, eager=True)
        return polars.DataFrame({**numbers(row, keys), "number": row}).lazy()

    def _work(self, piece: int) -> list[int]:
        from polars import col
        from polars import len as count

        query = self._frames[piece].join(self._dimension, on="key", how="inner").group_by("group")
        query = query.agg(col("value").sum(), col("number").max(), col("worth").sum(), rows=count())
        found = query.sort("value", "group").collect(engine=self._engine)
        sums = [int(found[name].sum()) for name in ("value", "number", "worth")]
        last = total_of(sums, int(found["group"].head(1000).sum()))
        return [int(found["rows"].sum()), found.height, found.height, last]


class FramesOnDask(_Elsewhere):
    """Dask-CUDA: a worker keeps frames as results of tasks, and spills those of a while ago."""

    def make(self) -> None:
        from dask_cuda import LocalCUDACluster
        from distributed import Client, wait

        self._cluster = LocalCUDACluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit=0,
            rmm_async=True,
            rmm_maximum_pool_size=self._budget_bytes,
            device_memory_limit=int(_OF_SPILLING * self._budget_bytes),
            dashboard_address=None,
        )
        self._client = Client(self._cluster)
        keys = min(KEYS, self._rows)
        self._dimension = self._client.submit(_dimension_there, self._rows)
        self._frames = [
            self._client.submit(_frame_there, number, self._rows, keys)
            for number in range(self._pieces)
        ]
        wait([self._dimension, *self._frames])

    def drop(self) -> None:
        self._frames, self._dimension = [], None
        self._client.close()
        self._cluster.close()

    def _work(self, piece: int) -> list[int]:
        asked = self._client.submit(_worked_there, self._frames[piece], self._dimension, pure=False)
        return list(asked.result())


def _dimension_there(rows: int) -> Any:
    import cudf

    return dimension(cudf, rows)


def _frame_there(number: int, rows: int, keys: int) -> Any:
    import cudf

    # It tells Dask how large a frame is: without it a worker takes them for small, and spills none.
    import dask_cudf

    assert dask_cudf
    return frame_of(cudf, number, rows, keys)


def _worked_there(frame: Any, of: Any) -> list[int]:
    return list(worked(frame, of))
