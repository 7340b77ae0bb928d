# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage vocabulary on cuDF: one GPU, RMM's current memory resource.

cuDF's CSV reader accepts almost anything as a number or a date. What it lets pass is caught
before: by the scan of data that comes without ``categories.json``, and by the recorded file sizes
of data that comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

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
from rmm_uvm_mortgage.schema import DELIMITER, NULL_FIELDS, TableSchema

if TYPE_CHECKING:
    import cudf
    import pyarrow as pa
    import xgboost as xgb

_READER_TYPES = {"date": "datetime64[ms]", "category": "str"}
_QUOTE_NONE = 3


class CudfEngine(Engine["cudf.DataFrame", "cudf.Series"]):
    """Runs the pipeline with cuDF.

    Parameters
    ----------
    observers : sequence of StageObserver
        Told about every stage.

    Raises
    ------
    AvailabilityError
        cuDF is not installed, or finds no GPU.

    Notes
    -----
    Choose RMM's memory resource before the first frame is made. All work is on cuDF's default
    stream.
    """

    name = "cudf"
    training_device: Literal["cpu", "cuda"] = "cuda"

    def __init__(self, observers: Sequence[StageObserver] = ()) -> None:
        super().__init__(observers)
        try:
            import cudf
        except ImportError as error:
            raise AvailabilityError(
                f"the cudf engine needs {error.name or 'cudf'}: pip install 'rmm-uvm-mortgage[gpu]'"
            ) from error
        except Exception as error:  # cuDF raises its CUDA errors as they come
            raise AvailabilityError(f"cuDF finds no usable GPU: {error}") from error
        self._cudf = cudf

    def synchronize(self) -> None:
        """Wait for cuDF's stream."""
        from cuda.bindings import runtime
        from rmm.pylibrmm.stream import DEFAULT_STREAM

        # Waiting is a call of CUDA's driver, which takes the thread's context as it finds it; a
        # pool of threads, as Dask's workers have, brings threads that have none yet.
        runtime.cudaFree(0)
        DEFAULT_STREAM.synchronize()

    # -- frames in and out ---------------------------------------------------------------------

    def read_text(
        self, source: TextRange, schema: TableSchema, domains: Mapping[str, Sequence[str]]
    ) -> cudf.DataFrame:
        """Read a range of lines; see the base class."""
        # cuDF takes the rows whose preceding line end lies in the range; size 0 is "to the end".
        is_last = source.end_bytes == source.path.stat().st_size
        frame = self._cudf.read_csv(
            str(source.path),
            sep=DELIMITER,
            header=None,
            names=list(schema.column_names),
            dtype={c.name: _READER_TYPES.get(c.type, c.type) for c in schema.columns},
            na_values=list(NULL_FIELDS),
            keep_default_na=False,
            quoting=_QUOTE_NONE,
            byte_range=(source.begin_bytes - 1, 0 if is_last else source.size_bytes),
        )
        for name in ("loan_id", "monthly_reporting_period"):
            if name in frame and (nulls := frame[name].null_count):
                raise DataError(
                    f"{source.path} is broken: {nulls} rows have no {name}. "
                    "Repair or remove the file"
                )
        for name, domain in schema.category_columns.items():
            frame[name] = self._codes(source, frame[name], domains[domain])
        return frame

    def _codes(self, source: TextRange, strings: cudf.Series, domain: Sequence[str]) -> cudf.Series:
        """Return int32 positions of strings in the domain, null where the string is null."""
        labels = strings.astype(self._cudf.CategoricalDtype(list(domain)))
        codes = labels.cat.codes.astype("int32")
        codes = codes.where(codes >= 0) if codes.null_count < strings.null_count else codes
        if codes.null_count != strings.null_count:
            raise DataError(
                f"{source.path}: {strings.name} holds a value that categories.json does not "
                "list; remove categories.json to have the data scanned"
            )
        return codes

    def to_host(self, frame: cudf.DataFrame) -> pa.Table:
        """Copy a frame to an Arrow table in host memory."""
        return frame.to_arrow(preserve_index=False).replace_schema_metadata(None)

    def from_host(self, table: pa.Table) -> cudf.DataFrame:
        """Copy an Arrow table to a frame."""
        return self._cudf.DataFrame.from_arrow(table)

    def height(self, frame: cudf.DataFrame) -> int:
        """Return the number of rows."""
        return len(frame)

    def column_names(self, frame: cudf.DataFrame) -> list[str]:
        """Return the column names in order."""
        return list(frame.columns)

    # -- columns of a frame --------------------------------------------------------------------

    def assign_constant(self, frame: cudf.DataFrame, name: str, value: int, dtype: DType) -> None:
        """Add a constant column; the frame is changed."""
        import numpy as np

        frame[name] = np.dtype(dtype).type(value)

    def drop(self, frame: cudf.DataFrame, names: Sequence[str]) -> None:
        """Remove columns; the frame is changed."""
        for name in names:
            del frame[name]

    def rename(self, frame: cudf.DataFrame, names: Mapping[str, str]) -> cudf.DataFrame:
        """Return a frame that shares all columns, some under new names."""
        return frame.rename(columns=dict(names), copy=False)

    def select(self, frame: cudf.DataFrame, names: Sequence[str]) -> cudf.DataFrame:
        """Return a frame that shares the named columns."""
        return frame[list(names)]

    # -- tables --------------------------------------------------------------------------------

    def filter(self, frame: cudf.DataFrame, mask: EngineColumn[cudf.Series]) -> cudf.DataFrame:
        """Return the rows where `mask` is true."""
        keep = mask.data.fillna(False) if mask.data.null_count else mask.data  # noqa: FBT003
        return frame[keep].reset_index(drop=True)

    def groupby(
        self, frame: cudf.DataFrame, keys: Sequence[str], aggregations: Mapping[str, Aggregation]
    ) -> cudf.DataFrame:
        """Return one row per distinct key."""
        groups = frame.groupby(list(keys), sort=False, as_index=False)
        return groups.agg(dict(aggregations))

    def left_join(
        self, left: cudf.DataFrame, right: cudf.DataFrame, on: Sequence[str]
    ) -> cudf.DataFrame:
        """Return the rows of `left` with the matching ones of `right`."""
        return left.merge(right, how="left", on=list(on))

    def concat(self, frames: Sequence[cudf.DataFrame]) -> cudf.DataFrame:
        """Return all rows of the frames."""
        return self._cudf.concat(frames, ignore_index=True)

    # -- training ------------------------------------------------------------------------------

    def training_matrix(
        self, features: cudf.DataFrame, label: cudf.DataFrame, missing: float
    ) -> xgb.DMatrix:
        """Build XGBoost's matrix from device memory."""
        import xgboost as xgb

        return xgb.DMatrix(features, label=label, missing=missing)

    # -- column operators ----------------------------------------------------------------------

    def _get(self, frame: cudf.DataFrame, name: str) -> cudf.Series:
        return frame[name]

    def _set(self, frame: cudf.DataFrame, name: str, column: cudf.Series) -> None:
        frame[name] = column

    def _arithmetic(
        self, operator: Arithmetic, left: cudf.Series, right: cudf.Series | float
    ) -> cudf.Series:
        method = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv"}
        return getattr(left, method[operator])(right)

    def _compare(self, operator: Comparison, left: cudf.Series, right: float) -> cudf.Series:
        method = {"greater_equal": "ge", "greater": "gt", "equal": "eq"}
        return getattr(left, method[operator])(right)

    def _floor(self, column: cudf.Series) -> cudf.Series:
        # np.floor would go through CuPy, which compiles a kernel at run time.
        return column // 1

    def _cast(self, column: cudf.Series, dtype: DType) -> cudf.Series:
        return column.astype(dtype)

    def _fill_null(self, column: cudf.Series, value: float | bool) -> cudf.Series:  # noqa: FBT001
        return column.fillna(value)

    def _date_part(self, column: cudf.Series, part: Literal["year", "month"]) -> cudf.Series:
        return getattr(column.dt, part)
