# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The features that are right: those of plain pandas, unsplit, without any device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmm_uvm_mortgage.compare import compare_features
from rmm_uvm_mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm_mortgage.prep import hold_out


@dataclass(frozen=True, slots=True)
class Reference:
    """Features of plain pandas.

    Parameters
    ----------
    digest : str
        See `rmm_uvm_mortgage.compare.features_digest`.
    path : Path
        Arrow file of the features; must exist as long as `describe` is used.
    training_rows : int
        Rows that are not held out.
    """

    digest: str
    path: Path
    training_rows: int

    def describe(self, digest: str | None, path: Path) -> str | None:
        """Return how the features of a run compare with these.

        Parameters
        ----------
        digest : str or None
            Of the run's features; None if it made none.
        path : Path
            Arrow file of the run's features; read only when the digests differ.

        Returns
        -------
        str or None
            "identical", every bit of every row; "equal to 1e-6"; or "different: ..." with the
            first difference.
        """
        if digest is None:
            return None
        if digest == self.digest:
            return "identical"
        difference = compare_features(_read(self.path), _read(path))
        return "equal to 1e-6" if difference is None else f"different: {difference}"


def make_reference(
    data: Path, path: Path, progress: Callable[[PipelineProgress], None] | None = None
) -> Reference:
    """Run the ETL with plain pandas.

    Parameters
    ----------
    data : Path
        Root of a data set; files are taken as they are.
    path : Path
        Where to write the features.
    progress : callable or None
        Called at the begin of every stage.
    """
    from rmm_uvm_mortgage.engines import make_engine

    config = PipelineConfig(data, train_parts=0, features_path=path)
    result = run_pipeline(config, make_engine("pandas"), progress=progress)
    assert result.feature_digest is not None  # host memory has no resource that runs out
    return Reference(result.feature_digest, path, hold_out(_read(path))[0].num_rows)


def _read(path: Path) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
