# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pipeline's tasks: functions that Dask runs on workers.

Large results stay on the worker; each comes with an account, which a task of its own picks out, so
that only figures travel to the client.

Importing it needs neither RMM nor a data frame library: the scheduler does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm_mortgage.cluster.account import Account, PartSummary, PreparedSummary
from rmm_uvm_mortgage.compare import features_digest
from rmm_uvm_mortgage.etl import run_etl
from rmm_uvm_mortgage.files import Part
from rmm_uvm_mortgage.prep import MISSING, feature_names, hold_out, training_frames
from rmm_uvm_mortgage.steps.final import LABEL

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmm_uvm_mortgage.cluster.state import MortgageWorker
    from rmm_uvm_mortgage.cluster.worker_engine import WorkerEngine

PartResult = tuple["pa.Table | None", Account, PartSummary | None]
"""Features in host memory, account, figures: what `compute_part` leaves on a worker."""
Prepared = tuple[Any, Any, "pa.Table | None", Account, PreparedSummary | None]
"""Features and label as XGBoost takes them, held-out rows, account, figures."""


def compute_part(run: str, part: Part) -> PartResult:
    """Compute the features of a part; they stay here until somebody needs them."""

    def work(engine: WorkerEngine) -> pa.Table:
        return run_etl(engine.engine, part)

    table, account = _state(run).measure(work, part.title)
    if table is None:
        return None, account, None
    import pyarrow.compute as pc

    ones = int(pc.sum(table.column(LABEL)).as_py() or 0)
    summary = PartSummary(part.title, table.num_rows, ones, features_digest([table]))
    return table, account, summary


def part_figures(result: PartResult) -> tuple[Account, PartSummary | None]:
    """Return what the client wants to know of a part."""
    return result[1:]


def prepare(run: str, results: Sequence[PartResult]) -> Prepared:
    """Put the features of some parts together, as XGBoost takes them."""
    import pyarrow as pa

    tables = [result[0] for result in results]
    training, held_out = zip(*map(hold_out, tables), strict=True)

    def work(engine: WorkerEngine) -> tuple[Any, Any]:
        with engine.engine.stage("prep"):
            features, label = training_frames(engine.engine, training)
            return engine.partition(features), engine.partition(label)

    frames, account = _state(run).measure(work)
    if frames is None:
        return None, None, None, account, None
    unseen = pa.concat_tables(held_out)
    summary = PreparedSummary(
        tuple(feature_names(unseen.column_names)),
        sum(table.num_rows for table in training),
        unseen.num_rows,
    )
    return (*frames, unseen, account, summary)


def prepared_figures(prepared: Prepared) -> tuple[Account, PreparedSummary | None]:
    """Return what the client wants to know of PREP on a worker."""
    return prepared[3:]


def begin_training(run: str, prepared: Prepared) -> Account:
    """Begin the stage ``train`` here; see `MortgageWorker.begin_training`."""
    return _state(run).begin_training(prepared[0])


async def end_training(run: str, dask_worker: Any) -> Account | None:
    """End the stage ``train`` here; `distributed.Client.run` calls it.

    It may have to wait for a part that is computed again; the worker's event loop must not.
    """
    return await asyncio.to_thread(_state(run, dask_worker).end_training)


def take_errors(run: str, dask_worker: Any) -> list[str]:
    """Return what went wrong here since the last call; `distributed.Client.run` calls it."""
    return _state(run, dask_worker).take_errors()


def pick(prepared: Prepared, what: Literal["features", "label"]) -> Any:
    """Return one of the frames that PREP made here, to be passed on to XGBoost."""
    return prepared[("features", "label").index(what)]


def predict(prepared: Prepared, model: bytes) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any]]:
    """Return labels and predictions of the rows held out here; they stay in host memory.

    Parameters
    ----------
    prepared : Prepared
        From `prepare`.
    model : bytes
        XGBoost's model in UBJSON, which names no device.
    """
    import numpy as np
    import xgboost as xgb

    unseen = prepared[2]
    assert unseen is not None  # the client asks for no predictions where PREP did not complete
    labels = unseen.column(LABEL).to_numpy().astype(np.int8)
    if unseen.num_rows == 0:
        return labels, np.zeros(0, np.float32)
    names = feature_names(unseen.column_names)
    booster = xgb.Booster(model_file=bytearray(model))
    matrix = xgb.DMatrix(unseen.select(names).to_pandas(), missing=MISSING)
    return labels, booster.predict(matrix)


def _state(run: str, dask_worker: Any = None) -> MortgageWorker:
    from rmm_uvm_mortgage.cluster.state import state

    return state(run, dask_worker)
