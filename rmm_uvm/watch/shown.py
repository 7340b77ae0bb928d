# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How figures of a device are shown: as a table, with what is not known said to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm.units import format_bytes
from rmm_uvm.watch.table import html_table, text_table

if TYPE_CHECKING:
    from rmm_uvm.watch.snapshot import Snapshot, Window

__all__ = ["ShownAsTable", "budget_rows", "known_bytes", "traffic_rows"]


class ShownAsTable:
    """Prints as a table, in notebooks too."""

    def _title(self) -> str:
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_table(self._title(), self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._rows())


def known_bytes(value: int | None) -> str:
    """Return a size, or that it is unknown."""
    return "unknown" if value is None else format_bytes(value)


def traffic_rows(of: Snapshot | Window) -> list[tuple[str, str]]:
    """Return a row for each way that bytes moved, and for faults where they were counted."""
    rows = [
        ("to the device", known_bytes(of.host_to_device_bytes)),
        ("to the host", known_bytes(of.device_to_host_bytes)),
        ("evicted (estimate)", known_bytes(of.evicted_bytes_estimate)),
        ("prefetched", known_bytes(of.prefetched_bytes)),
        ("discarded", known_bytes(of.discarded_bytes)),
    ]
    if of.gpu_faults is not None and of.cpu_faults is not None:
        rows.append(("faults", f"{of.gpu_faults:,} of the GPU, {of.cpu_faults:,} of the CPU"))
    return rows


def budget_rows(budget: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return how a budget is kept; nothing without one."""
    if budget is None:
        return []
    names = ("resident", "budget", "overshoot", "evicted", "dropped")
    size = {name: known_bytes(budget[f"{name}_bytes"]) for name in names}
    beside = size["overshoot"]
    rows = [
        ("budget", f"{size['resident']} of {size['budget']}"),
        ("beside it", f"{beside} (estimate)" if beside != "unknown" else beside),
        ("for it", f"{size['evicted']} evicted, {size['dropped']} dropped"),
    ]
    if budget.get("neighbor_bytes"):
        now, back, given = (
            known_bytes(budget.get(f"{name}_bytes"))
            for name in ("harvested", "from_neighbor", "given_back")
        )
        rows.append(("on neighbours", f"{now}; {back} came back, {given} given back"))
    return rows
