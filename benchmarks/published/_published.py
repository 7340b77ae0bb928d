# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Published tables beside what the simulator says: rows, orders, verdicts, printing, JSON.

No GPU is needed or used. A `Row` is one published figure and ours; it is *met* within 15 %, and
otherwise has to name the assumption that fails. An `Order` is a published ranking; ours is the
same, or names the assumption likewise.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1]))  # for `benchmarks`
RESULTS = HERE.parent / "results" / "published"
TOLERANCE_FRACTION = 0.15
_ROUNDING = 1e-9  # 0.85 - 1 is a little more than 0.15 away
_DIGITS = 6


def rounded(value: float) -> float:
    """Return `value` to six digits, so that a result file is the same on every machine."""
    return float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True)
class Row:
    """One published figure, and ours.

    Parameters
    ----------
    case, quantity, unit
        What was run, what was measured, and in what.
    theirs, ours
        The published figure and the simulator's.
    reason
        Which assumption fails, where the two are further apart than 15 %.
    by_construction
        Ours is made of the published figure, or could be nothing else: no evidence for the model.
    """

    case: str
    quantity: str
    unit: str
    theirs: float
    ours: float
    reason: str = ""
    by_construction: bool = False

    @property
    def ratio(self) -> float | None:
        """Ours over theirs; None where theirs is zero."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def met(self) -> bool:
        """Whether ours is within 15 % of theirs; where theirs is zero, ours is too."""
        if self.ratio is None:
            return self.ours == 0
        return abs(self.ratio - 1) <= TOLERANCE_FRACTION + _ROUNDING

    @property
    def verdict(self) -> str:
        """One of "within 15 %", "by construction", "explained" and "missed"."""
        if self.met:
            return "by construction" if self.by_construction else "within 15 %"
        return "explained" if self.reason else "missed"


@dataclass(frozen=True)
class Order:
    """A published ranking: `names` from the least to the most, and our figure of each.

    `reason` says which assumption fails, where ours is another one; `by_construction` that ours
    could be no other.
    """

    claim: str
    names: tuple[str, ...]
    ours: tuple[float, ...]
    unit: str
    reason: str = ""
    by_construction: bool = False

    @property
    def verdict(self) -> str:
        """One of "right", "by construction", "explained" and "wrong"."""
        if self.right:
            return "by construction" if self.by_construction else "right"
        return "explained" if self.reason else "wrong"

    @property
    def right(self) -> bool:
        """Whether our figures rise in the published order."""
        return all(a < b for a, b in zip(self.ours, self.ours[1:], strict=False))


@dataclass(frozen=True)
class Table:
    """One published table beside ours.

    Parameters
    ----------
    name, title, source
        File name of the result, what it is, and where the published figures are from.
    machine
        The machine's name with its label.
    workload
        What is run on the simulator, and where that description comes from.
    scale
        By what factor sizes are smaller than the published ones; 1 for as published.
    rows, orders
        The comparison.
    left_out
        What is published there and not compared, with the reason.
    """

    name: str
    title: str
    source: str
    machine: str
    workload: str
    scale: int = 1
    rows: tuple[Row, ...] = ()
    orders: tuple[Order, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows and orders there are of each verdict."""
        count = dict.fromkeys(("within 15 %", "by construction", "explained", "missed"), 0)
        for row in self.rows:
            count[row.verdict] += 1
        for verdict in ("right", "by construction", "explained", "wrong"):
            count[f"orders {verdict}"] = sum(order.verdict == verdict for order in self.orders)
        return count

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        rows = [
            {
                **{"case": row.case, "quantity": row.quantity, "unit": row.unit},
                **{"theirs": row.theirs, "ours": rounded(row.ours)},
                "ratio": None if row.ratio is None else round(row.ratio, 3),
                "verdict": row.verdict,
                **({"reason": row.reason} if row.verdict == "explained" else {}),
            }
            for row in self.rows
        ]
        orders = [
            {
                **{"claim": order.claim, "names": list(order.names)},
                **{"ours": [rounded(value) for value in order.ours]},
                **{"unit": order.unit, "verdict": order.verdict},
                **({"reason": order.reason} if order.verdict == "explained" else {}),
            }
            for order in self.orders
        ]
        return {
            **{"name": self.name, "title": self.title, "source": self.source},
            **{"machine": self.machine, "workload": self.workload, "scale": self.scale},
            **{"rows": rows, "orders": orders, "left_out": dict(self.left_out)},
            "verdicts": self.verdicts,
        }


def published(name: str) -> dict[str, Any]:
    """Return the published figures of a table."""
    figures: dict[str, Any] = json.loads((HERE / "data" / f"{name}.json").read_text())
    return figures


def result_path(name: str) -> Path:
    """Return where the result of a table is kept."""
    return RESULTS / f"{name}.json"


def write_result(table: Table, path: Path) -> None:
    """Write a table with the machine profile, versions, date and commit."""
    from benchmarks.common import harness

    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "benchmark": f"published/{table.name}",
        "environment": {"device": table.machine, "simulated": True, **harness.software()},
        "table": table.to_json(),
    }
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def text_of(table: Table) -> str:
    """Return a table as it is printed."""
    lines = [
        f"Simulated on {table.machine}" + (f", sizes / {table.scale}" if table.scale > 1 else ""),
        table.title,
        f"published: {table.source}",
        "",
    ]
    lines += _columns(
        ("case", "quantity", "theirs", "ours", "ratio", ""),
        [
            (
                *(row.case, f"{row.quantity}, {row.unit}", _figure(row.theirs), _figure(row.ours)),
                "-" if row.ratio is None else f"{row.ratio:.2f}",
                ""
                if row.verdict == "within 15 %"
                else row.verdict + (f": {row.reason}" if row.reason and not row.met else ""),
            )
            for row in table.rows
        ],
    )
    for order in table.orders:
        ranking = " < ".join(
            f"{name} ({_figure(value)})"
            for name, value in zip(order.names, order.ours, strict=True)
        )
        why = f": {order.reason}" if order.verdict == "explained" else ""
        lines.append(f"order {order.verdict}: {order.claim}: {ranking} {order.unit}{why}")
    lines += [f"left out: {what}: {why}" for what, why in table.left_out.items()]
    counts = ", ".join(f"{number} {verdict}" for verdict, number in table.verdicts.items())
    return "\n".join([*lines, counts])


def run(table: Callable[[], Table], arguments: Sequence[str] | None = None) -> int:
    """Print a table; with ``--json FILE`` write it; return 1 where a row or an order is missed."""
    parser = argparse.ArgumentParser(description=sys.modules[table.__module__].__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result here")
    options = parser.parse_args(arguments)
    result = table()
    print(text_of(result))
    if options.json:
        write_result(result, options.json)
    return exit_status(result)


def exit_status(table: Table) -> int:
    """Return 1 where a row is missed or an order is wrong, else 0."""
    return 1 if table.verdicts["missed"] or table.verdicts["orders wrong"] else 0


def _figure(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _columns(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head) - 1)]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        ).rstrip()
        for row in [head, *rows]
    ]
