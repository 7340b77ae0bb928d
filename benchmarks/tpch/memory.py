# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that queries run in, by the name of a way, and what it can say afterwards.

========  ==========================================================================
cuda      what cudf.pandas and cudf-polars take where they use no managed memory
stock     what they take by default: RMM's pool over managed memory, and prefetching
ours      the pool of this project
budget    the same with a budget of device memory
========  ==========================================================================

The stock chain has the size of the others in place of four fifths of the device, and RMM's limiting
adaptor: so it stays under the cap on managed memory. The adaptor bounds cudaMallocAsync's pool too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

GPU_WAYS = ("cuda", "stock", "ours", "budget")
OUR_WAYS = ("ours", "budget")
_RESIDENCY = ("evicted_bytes", "dropped_bytes", "fetched_bytes", "faulted_bytes")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much memory a way has.

    Parameters
    ----------
    pool_bytes : int
        Of the pool, at most.
    budget_bytes : int or None
        Of it, to keep on the device; of the way ``budget``.
    """

    pool_bytes: int
    budget_bytes: int | None = None

    def keywords(self) -> dict[str, int | None]:
        """Return the keywords of our pool; with a budget it is the budget that says its begin."""
        if self.budget_bytes is None:
            sizes = {"initial_pool_size": self.pool_bytes, "maximum_pool_size": self.pool_bytes}
            return {**sizes, "device_budget": None}
        return {"device_budget": self.budget_bytes, "maximum_pool_size": self.pool_bytes}


def stock_resource(way: str, sizes: Sizes, *, pooled: bool) -> Any:
    """Return RMM's own resource; `pooled` says whether cudaMalloc memory comes from a pool."""
    import rmm

    if way == "cuda" and not pooled:
        # It knows a threshold of release, and no maximum.
        return rmm.mr.LimitingResourceAdaptor(rmm.mr.CudaAsyncMemoryResource(), sizes.pool_bytes)
    if way == "stock":
        import pylibcudf

        pylibcudf.prefetch.enable()
    from benchmarks.common.chains import make_chain
    from rmm_uvm.drivers import cuda_driver

    chain = {"cuda": "cuda-pool", "stock": "rmm-prefetch"}[way]
    return make_chain(chain, sizes.pool_bytes, cuda_driver(0))


def figures_of(resource: Any) -> dict[str, Any]:
    """Return peak and, with a budget, what moved; nothing of RMM's own chains."""
    peak_bytes = getattr(resource, "peak_bytes", None)
    if peak_bytes is None:
        return {}
    counts = resource.managed_mr.residency.residency() or {}
    return {"peak_bytes": peak_bytes, **{n: counts[n] for n in _RESIDENCY if n in counts}}
