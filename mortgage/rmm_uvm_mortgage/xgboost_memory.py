# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much device memory XGBoost takes by cudaMalloc, past RMM and every pool.

Rules for XGBoost 3.0 to 3.2, ``DMatrix`` made from a cuDF frame, ``tree_method="hist"``,
``device="cuda"``. Counted is everything that grows with rows or bins. Not counted: work space of
scans and reductions, category tables, a few megabytes of the CUDA modules, and caching: XGBoost
keeps small freed buffers.

References
----------
github.com/dmlc/xgboost, tag v3.2.0: src/data/simple_dmatrix.cuh `CopyToSparsePage`;
src/common/hist_util.cu `SketchBatchNumElements`; src/data/ellpack_page.cu `CalcNumSymbols`;
src/common/compressed_iterator.h `SymbolBits`; src/tree/updater_gpu_hist.cu;
src/tree/gpu_hist/row_partitioner.cuh, histogram.cuh; src/tree/driver.h `IsChildValid`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmm_uvm_mortgage.prep import MISSING

if TYPE_CHECKING:
    import pandas as pd

ENTRY_BYTES = 8
"""A value and its column."""
SKETCH_FREE_FRACTION = 0.8
"""Share of the free device memory that sorting for quantiles may take; it works in batches."""
MAX_BIN = 256
_LABEL_BYTES = 4
_OFFSET_BYTES = 8
_GRADIENT_BYTES = 8 + 16  # as computed, and as whole numbers for exact sums
_ROW_WORK_BYTES = 4 + 4 + 4 + 4  # prediction, position, row index and its copy while splitting
_HISTOGRAM_BIN_BYTES = 16
_HISTOGRAM_RESERVE_BYTES = (1 << 22) * 8
_SAMPLED_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class TrainingShape:
    """Everything about a training set that XGBoost's memory depends on.

    Parameters
    ----------
    rows : int
        Rows to train on.
    entries : int
        Feature values that are not missing, over all rows.
    row_stride : int
        Most such values in one row.
    bins : int
        Bins of all features; at most 256 for each.
    depth : int
        Greatest depth of a tree.
    """

    rows: int
    entries: int
    row_stride: int
    bins: int
    depth: int

    def scaled(self, rows: int) -> TrainingShape:
        """Return the shape of a set of other height and the same kind."""
        entries = round(self.entries * rows / self.rows)
        return TrainingShape(rows, entries, self.row_stride, self.bins, self.depth)

    @property
    def matrix_bytes(self) -> dict[str, int]:
        """Buffers of the matrix, which live as long as it does."""
        return {
            "row offsets": (self.rows + 1) * _OFFSET_BYTES,
            "entries": self.entries * ENTRY_BYTES,
            "labels": self.rows * _LABEL_BYTES,
        }

    @property
    def sketch_bytes(self) -> int:
        """Bytes for sorting all entries at once: the entries again, and the sort's buffer."""
        return 2 * self.entries * ENTRY_BYTES

    @property
    def training_bytes(self) -> dict[str, int]:
        """Buffers that live while trees are built."""
        bits = max(math.ceil(math.log2(self.bins + 1)), 1)
        # The deepest nodes are leaves: no histogram is made where nothing can be split.
        nodes = 2**self.depth - 1
        histogram_bytes = nodes * self.bins * _HISTOGRAM_BIN_BYTES
        return {
            "bin indices": -(-self.rows * self.row_stride * bits // 8),
            "gradients": self.rows * _GRADIENT_BYTES,
            "rows of nodes": self.rows * _ROW_WORK_BYTES,
            "histograms": max(histogram_bytes, _HISTOGRAM_RESERVE_BYTES),
        }


def training_shape(features: pd.DataFrame, depth: int) -> TrainingShape:
    """Measure a training set.

    Parameters
    ----------
    features : pandas.DataFrame
        Feature columns; -1 is missing.
    depth : int
        Greatest depth of a tree.

    Notes
    -----
    Bins are counted in the first 200,000 rows, so rare values may be left out.
    """
    import numpy as np

    present = np.zeros(len(features), np.int64)
    bins = 0
    for name in features.columns:
        values = features[name]
        present += (values != MISSING).to_numpy()
        sample = values.iloc[:_SAMPLED_ROWS]
        bins += min(int(sample[sample != MISSING].nunique()), MAX_BIN)
    longest = int(present.max()) if len(present) else 0
    return TrainingShape(len(features), int(present.sum()), longest, max(bins, 1), depth)
