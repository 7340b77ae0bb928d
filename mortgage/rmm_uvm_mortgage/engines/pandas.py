# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage vocabulary on pandas: the reference result, on a CPU.

Integers that may be null are pandas' masked types (``Int32``), so that they stay integers as in
cuDF. Floats are NumPy's with NaN as null, dates ``datetime64[ms]`` with NaT as null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm_mortgage.engines.base import (
    Aggregation,
    Arithmetic,
    Comparison,
    DType,
    Engine,
    EngineColumn,
    StageObserver,
)
from rmm_uvm_mortgage.ranges import TextRange
from rmm_uvm_mortgage.schema import TableSchema
from rmm_uvm_mortgage.text import read_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import xgboost as xgb

_MASKED = {"int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64"}


class PandasEngine(Engine["pd.DataFrame", "pd.Series[Any]"]):
    """Runs the pipeline with pandas.

    Parameters
    ----------
    observers : sequence of StageObserver
        Told about every stage.

    Raises
    ------
    AvailabilityError
        pandas or pyarrow is not installed.
    """

    name = "pandas"
    training_device: Literal["cpu", "cuda"] = "cpu"

    def __init__(self, observers: Sequence[StageObserver] = ()) -> None:
        super().__init__(observers)
        try:
            import pandas  # noqa: F401
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise AvailabilityError(
                f"the pandas engine needs {error.name}: pip install 'rmm-uvm-mortgage[cpu]'"
            ) from error

    # -- frames in and out ---------------------------------------------------------------------

    def read_text(
        self, source: TextRange, schema: TableSchema, domains: Mapping[str, Sequence[str]]
    ) -> pd.DataFrame:
        """Read a range of lines; see the base class."""
        import pandas as pd

        table = read_table(source, schema)
        columns: dict[str, pd.Series[Any]] = {}
        for spec in schema.columns:
            array = table.column(spec.name).combine_chunks()
            table = table.drop_columns([spec.name])
            if spec.domain is not None:
                array = _codes(source, spec.name, array, domains[spec.domain])
            columns[spec.name] = _to_series(array)
        return pd.DataFrame(columns, copy=False)

    def to_host(self, frame: pd.DataFrame) -> pa.Table:
        """Copy a frame to an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)

    def from_host(self, table: pa.Table) -> pd.DataFrame:
        """Copy an Arrow table to a frame."""
        return table.to_pandas()

    def height(self, frame: pd.DataFrame) -> int:
        """Return the number of rows."""
        return len(frame)

    def column_names(self, frame: pd.DataFrame) -> list[str]:
        """Return the column names in order."""
        return list(frame.columns)

    # -- columns of a frame --------------------------------------------------------------------

    def assign_constant(self, frame: pd.DataFrame, name: str, value: int, dtype: DType) -> None:
        """Add a constant column; the frame is changed."""
        import pandas as pd

        frame[name] = pd.Series(value, index=frame.index, dtype=_MASKED.get(dtype, dtype))

    def drop(self, frame: pd.DataFrame, names: Sequence[str]) -> None:
        """Remove columns; the frame is changed."""
        for name in names:
            del frame[name]

    def rename(self, frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
        """Return a frame with some columns under new names."""
        return frame.rename(columns=dict(names))

    def select(self, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Return a frame of the named columns."""
        # The shallow copy is for pandas 2, which warns of changes to a selection.
        return frame[list(names)].copy(deep=False)

    # -- tables --------------------------------------------------------------------------------

    def filter(self, frame: pd.DataFrame, mask: EngineColumn[pd.Series[Any]]) -> pd.DataFrame:
        """Return the rows where `mask` is true."""
        return frame[mask.data.fillna(False).to_numpy(bool)].reset_index(drop=True)  # noqa: FBT003

    def groupby(
        self, frame: pd.DataFrame, keys: Sequence[str], aggregations: Mapping[str, Aggregation]
    ) -> pd.DataFrame:
        """Return one row per distinct key."""
        groups = frame.groupby(list(keys), sort=False, as_index=False)
        return groups.agg(dict(aggregations))

    def left_join(self, left: pd.DataFrame, right: pd.DataFrame, on: Sequence[str]) -> pd.DataFrame:
        """Return the rows of `left` with the matching ones of `right`."""
        return left.merge(right, how="left", on=list(on))

    def concat(self, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return all rows of the frames."""
        import pandas as pd

        return pd.concat(frames, ignore_index=True)

    # -- training ------------------------------------------------------------------------------

    def training_matrix(
        self, features: pd.DataFrame, label: pd.DataFrame, missing: float
    ) -> xgb.DMatrix:
        """Build XGBoost's matrix."""
        import xgboost as xgb

        return xgb.DMatrix(features, label=label, missing=missing)

    # -- column operators ----------------------------------------------------------------------

    def _get(self, frame: pd.DataFrame, name: str) -> pd.Series[Any]:
        return frame[name]

    def _set(self, frame: pd.DataFrame, name: str, column: pd.Series[Any]) -> None:
        frame[name] = column

    def _arithmetic(
        self, operator: Arithmetic, left: pd.Series[Any], right: pd.Series[Any] | float
    ) -> pd.Series[Any]:
        method = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv"}
        result: pd.Series[Any] = getattr(left, method[operator])(right)
        return result

    def _compare(self, operator: Comparison, left: pd.Series[Any], right: float) -> pd.Series[Any]:
        method = {"greater_equal": "ge", "greater": "gt", "equal": "eq"}
        result = getattr(left, method[operator])(right).astype("boolean")
        # NumPy compares NaN to false; here it is a null and stays one.
        return result.mask(left.isna()) if left.dtype.kind == "f" and left.hasnans else result

    def _floor(self, column: pd.Series[Any]) -> pd.Series[Any]:
        import numpy as np

        return np.floor(column)

    def _cast(self, column: pd.Series[Any], dtype: DType) -> pd.Series[Any]:
        return column.astype(_MASKED.get(dtype, dtype))

    def _fill_null(self, column: pd.Series[Any], value: float | bool) -> pd.Series[Any]:  # noqa: FBT001
        return column.fillna(value)

    def _date_part(self, column: pd.Series[Any], part: Literal["year", "month"]) -> pd.Series[Any]:
        return getattr(column.dt, part).astype("Int32")


def _codes(source: TextRange, name: str, array: pa.Array, domain: Sequence[str]) -> pa.Array:
    """Replace a dictionary array's strings by their positions in the domain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ranks = pc.index_in(array.dictionary, value_set=pa.array(domain, pa.string()))
    if ranks.null_count:
        unknown = array.dictionary.filter(pc.is_null(ranks))[0].as_py()
        raise DataError(
            f"{source.path}: {name} holds {unknown!r}, which categories.json does not list; "
            "remove categories.json to have the data scanned"
        )
    return ranks.take(array.indices)


def _to_series(array: pa.Array) -> pd.Series[Any]:
    """Convert an Arrow array to the engine's column type, without copying values."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(array.type):
        return pd.Series(array.to_pandas(), copy=False)
    mask = pc.is_null(array).to_numpy(zero_copy_only=False)
    values = pc.fill_null(array, 0).to_numpy()
    return pd.Series(pd.arrays.IntegerArray(np.require(values, requirements="W"), mask))
