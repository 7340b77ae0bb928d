# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What kernels take while managed memory is copied to pinned host memory and back, on a GPU.

    RMM_UVM_MANAGED_LIMIT=4GiB python benchmarks/training/copies.py --json FILE

As ``activations="copy"`` copies: directly, and by way of device memory that is not managed
(staged). Kernels are matrix products of 2.7 ms and additions of a few microseconds, both over
managed memory that stays. Copies are issued first. Additions are launched by the host one by one:
what they take alone differs from row to row.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import rmm_uvm.torch
from rmm_uvm.torch.activations.side_streams import CudaSideStreams

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

MIB = 1 << 20
TENSOR_BYTES = 64 * MIB
TENSORS = 32  # copied each way
WAYS = {"out": (True, False), "back": (False, True), "both": (True, True)}
STAGING_BYTES = {"direct": 0, "staged": 64 * MIB}
WIDTH = 4096
PRODUCTS = 8
ADDITIONS = 1500
ROUNDS = 5
BOUND = 1.05  # of kernels beside staged copies over kernels alone


class Copies:
    """Tensors on managed memory, and others on the host, copied by streams of one kind."""

    def __init__(self, staging_bytes: int) -> None:
        self._streams = CudaSideStreams(rmm_uvm.cuda_driver(0), staging_bytes)
        if self._streams.staging_bytes != staging_bytes:
            raise SystemExit("the device has no room for copies to go through")
        size = TENSOR_BYTES
        self._device = [torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
        self._host = [torch.zeros(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]

    def issue(self, way: str) -> None:
        """Issue all copies of a way; both ways in turn."""
        sides = (self._streams.out, self._streams.back)
        ends = [(self._host[0], self._device[0]), (self._device[1], self._host[1])]
        for _ in range(TENSORS):
            for wanted, side, (target, source) in zip(WAYS[way], sides, ends, strict=True):
                if wanted:
                    storages = target.untyped_storage(), source.untyped_storage()
                    self._streams.copy(side, *storages, TENSOR_BYTES)

    def finish(self) -> None:
        """Wait for them."""
        self._streams.finish()


def kernel_kinds() -> dict[str, Callable[[], None]]:
    """Return the kernels by name."""
    matrix = torch.zeros(WIDTH, WIDTH, device="cuda")
    product, row = torch.zeros_like(matrix), torch.zeros(MIB, device="cuda")

    def products() -> None:
        for _ in range(PRODUCTS):
            torch.mm(matrix, matrix, out=product)

    def additions() -> None:
        for _ in range(ADDITIONS):
            row.add_(1.0)

    return {"products": products, "additions": additions}


def timed(copies: Copies, way: str, kernels: Callable[[], None]) -> tuple[float, float, float]:
    """Return seconds of kernels alone, of kernels beside copies, and of copies beside kernels."""
    found = []
    for beside in (False, True) * (ROUNDS + 1):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        since = time.perf_counter()
        if beside:
            copies.issue(way)
        begin.record()
        kernels()
        end.record()
        copies.finish()
        took = time.perf_counter() - since
        end.synchronize()
        found.append((begin.elapsed_time(end) / 1e3, took))
    alone, both = found[2::2], found[3::2]  # the first round warms up
    return (
        statistics.median(one[0] for one in alone),
        statistics.median(one[0] for one in both),
        statistics.median(one[1] for one in both),
    )


def main() -> None:
    """Measure."""
    json_path = harness.asked_json_path(__doc__)
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows = []
    with rmm_uvm.torch.managed(device_budget=1024 * MIB):
        kinds = kernel_kinds()
        for path, staging_bytes in STAGING_BYTES.items():
            copies = Copies(staging_bytes)
            for way, wanted in WAYS.items():
                for kind, kernels in kinds.items():
                    alone, beside, took = timed(copies, way, kernels)
                    row = {
                        **{"path": path, "way": way, "kernels": kind},
                        "alone_seconds": alone,
                        "beside_seconds": beside,
                        "ratio": beside / alone,
                        "copies_seconds": took,
                        "copied_bytes": sum(wanted) * TENSORS * TENSOR_BYTES,
                    }
                    rows.append(row)
                    print(
                        f"{kind:9} beside {path} copies {way:4}: {beside / alone:5.2f} of "
                        f"{alone * 1e3:.1f} ms; {row['copied_bytes'] / took / 1e9:.0f} GB/s"
                    )
            del copies
        del kinds, kernels
    verdicts = {
        f"{row['kernels']} beside staged copies {row['way']}": harness.judged(row["ratio"], BOUND)
        for row in rows
        if row["path"] == "staged"
    }
    harness.write_json(json_path, "torch_copies", {"rows": rows, "verdicts": verdicts})
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
