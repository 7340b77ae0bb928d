# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Make the README's picture: a merge that runs out of device memory, and then completes.

    python -P docs/make_pictures.py

Every line in it comes from a run on a simulated device of 256 MiB; the tables are those of
``notebooks/01_quickstart.ipynb``. Needs ``rmm-uvm-mortgage[cpu]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pyarrow as pa
import rmm
from matplotlib.figure import Figure

import rmm_uvm
from rmm_uvm_mortgage.shadow.engine import ShadowEngine

_MIB = 1 << 20
_ROWS = 4_000_000
_DEVICE_MEMORY = "256MiB"
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_FOOTPRINT, _RESIDENT, _LIMIT, _HOST = "black", "#56B4E9", "#D55E00", "#009E73"


def tables() -> tuple[pa.Table, pa.Table]:
    """Return the two tables to merge, 114 MB together."""
    random = np.random.default_rng(7)
    sales = pd.DataFrame(
        {
            "customer": random.integers(0, 100_000, _ROWS, dtype="int32"),
            **{name: random.random(_ROWS) for name in ("price", "tax", "discount")},
        }
    )
    customers = pd.DataFrame(
        {
            "customer": np.arange(100_000, dtype="int32"),
            "age": random.integers(18, 99, 100_000, dtype="int32"),
            "region": random.integers(0, 50, 100_000, dtype="int32"),
            "score": random.random(100_000),
        }
    )
    return pa.Table.from_pandas(sales), pa.Table.from_pandas(customers)


class Levels:
    """Passes kernels' accesses on to a simulated device, and notes the levels after each.

    Parameters
    ----------
    device : SimulatedDevice
        The device.
    managed : bool
        Whether the memory accessed is managed; cudaMalloc memory never moves.
    """

    def __init__(self, device: Any, *, managed: bool) -> None:
        self.device = device
        self.managed = managed
        self.footprint: list[float] = []
        self.resident: list[float] = []
        self.engine: ShadowEngine

    def touch(self, address: int, nbytes: int, write: bool = False) -> None:  # noqa: FBT001, FBT002
        """Let a kernel access a range."""
        if self.managed:
            self.device.touch(address, nbytes, write=write)
        footprint_bytes = self.engine.footprint.now_bytes
        resident_bytes = self.device.statistics()["resident_bytes"]
        on_device_bytes = min(footprint_bytes, resident_bytes) if self.managed else footprint_bytes
        self.footprint.append(footprint_bytes / _MIB)
        self.resident.append(on_device_bytes / _MIB)


def merge(memory: Any, levels: Levels) -> bool:
    """Merge on a memory, noting levels; return whether the merge completed."""
    engine = levels.engine = ShadowEngine(memory, levels)
    try:
        left, right = map(engine.from_host, tables())
        engine.left_join(left, right, on=["customer"])
    except MemoryError:
        return False
    return True


def draw(before: Levels, after: Levels, moved_bytes: int, path: Path) -> None:
    """Draw both runs beside each other on one scale."""
    mpl.rcParams["svg.hashsalt"] = "rmm-uvm"  # the same file from the same run
    figure = Figure(figsize=(9.2, 3.5), layout="constrained")
    figure.suptitle(
        "Simulated device of 256 MiB: allocations are real, residency is modelled", fontsize=9
    )
    panels = figure.subplots(1, 2, sharey=True)
    capacity = after.device.info.total_bytes / _MIB
    for panel, levels in zip(panels, (before, after), strict=True):
        position = range(len(levels.footprint))
        panel.fill_between(
            position, levels.resident, step="post", color=_RESIDENT, label="on the device"
        )
        panel.fill_between(
            position,
            levels.resident,
            levels.footprint,
            step="post",
            color=_HOST,
            alpha=0.6,
            label="moved to the host",
        )
        panel.step(position, levels.footprint, where="post", color=_FOOTPRINT, label="footprint")
        panel.axhline(capacity, color=_LIMIT, linestyle="--", label="device memory")
        panel.set_xlim(0, len(after.footprint) * 1.05)
        panel.set_ylim(0, capacity * 1.45)
        panel.set_xlabel("accesses of kernels, in order", fontsize=8)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].plot(
        len(before.footprint) - 1, before.footprint[-1], "X", color=_LIMIT, markersize=11
    )
    panels[0].text(
        0.03, 0.93, "MemoryError", color=_LIMIT, weight="bold", transform=panels[0].transAxes
    )
    panels[0].set_ylabel("MiB", fontsize=8)
    panels[0].set_title('sales.merge(customers, on="customer")', family="monospace", fontsize=9)
    panels[1].set_title("rmm_uvm.reinitialize(), and again", family="monospace", fontsize=9)
    panels[1].text(
        0.03,
        0.93,
        f"completes; {moved_bytes / _MIB:.0f} MiB moved to the host",
        color=_HOST,
        weight="bold",
        transform=panels[1].transAxes,
    )
    panels[1].legend(loc="lower right", fontsize=8, framealpha=0.9)
    figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(path: Path) -> None:
    """Run the merge twice, and draw it."""
    device = rmm_uvm.simulated_device(_DEVICE_MEMORY)
    size_bytes = device.info.total_bytes
    cuda = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    before = Levels(device, managed=False)
    if merge(rmm.mr.PoolMemoryResource(cuda, size_bytes, size_bytes), before):
        raise SystemExit("the merge was to run out of memory")
    device = rmm_uvm.simulated_device(_DEVICE_MEMORY)
    after = Levels(device, managed=True)
    with rmm_uvm.reinitialize(driver=device) as uvm:
        if not merge(uvm.managed_mr, after):
            raise SystemExit("the merge was to complete")
    draw(before, after, device.migrated_bytes()[1], path)


if __name__ == "__main__":
    default = Path(__file__).parent / "pictures" / "merge.svg"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
