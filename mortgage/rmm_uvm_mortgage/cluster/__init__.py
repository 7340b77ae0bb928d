# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on a Dask cluster: ETL on workers, training by XGBoost's Dask interface.

On the client, from the bottom up: `connect` (reaching workers), `workers` (what they are, and
whether they can do the work), `etl`, `training`, `quality`, `run` (all of it), `report` (figures),
`page` (text). On the workers: `state` (a Dask plugin), `worker_engine` (an engine over the pool
that is installed there), `tasks`, `account` (what a task did).

Not covered: several memories, finding the largest training set. A single process does both; see
`rmm_uvm_mortgage.run` and `rmm_uvm_mortgage.compare_memory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.support.submodules import submodules_of

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
