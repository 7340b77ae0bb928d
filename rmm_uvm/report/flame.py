# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Call paths as a flame graph: as wide as what was copied of the memory that they allocated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmm_uvm.recording.line_traffic import LineTraffic
from rmm_uvm.report import style, words
from rmm_uvm.report.document import Axis, Bands, Chart

__all__ = ["flame"]

_LANE_PIXELS = 22
_MOST_LANES = 24
_MOST_BANDS = 300
_MOST_NAMED = 60
_NARROWEST = 0.002  # of all bytes
_NARROWEST_NAMED = 0.06
_MOST_LETTERS = 110  # in all bytes; so that no name is wider than its band
_HOVER = (("line", "@line"), ("code", "@text"), ("copied", "@size"))


@dataclasses.dataclass
class _Node:
    nbytes: int = 0
    callees: dict[int, _Node] = dataclasses.field(default_factory=dict)


def flame(lines: LineTraffic) -> Chart | None:
    """Return the chart, the outermost calls at the top; None where nothing was copied.

    Parameters
    ----------
    lines : LineTraffic
        What moved, by call path.
    """
    root = _tree(lines)
    rows = list(_bands(lines, root, 0, 0, root.nbytes))
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: row["left"] - row["right"])[:_MOST_BANDS]
    lanes = 1 + max(int(row["top"]) for row in rows)
    wide = [row for row in rows if row["right"] - row["left"] >= _NARROWEST_NAMED * root.nbytes]
    named = sorted(wide[:_MOST_NAMED], key=lambda row: row["left"])
    known = {id(row) for row in named}
    groups = ((named, True), ([row for row in rows if id(row) not in known], False))
    return Chart(
        "flame",
        "Which calls",
        "Each band is a line, as wide as what was copied of the memory that it and its callees "
        f"allocated: {words.size(root.nbytes)} in all, {len(rows)} lines shown.",
        Axis(root.nbytes),
        Axis(lanes),
        tuple(
            Bands({name: [row[name] for row in chosen] for name in chosen[0]}, is_named, _HOVER)
            for chosen, is_named in groups
            if chosen
        ),
        lanes * _LANE_PIXELS + 12,
        is_bare=True,
    )


def _tree(lines: LineTraffic) -> _Node:
    root = _Node()
    for path in lines.paths:
        nbytes = path.moved.copied_bytes
        node = root
        root.nbytes += nbytes
        for number in path.lines[::-1]:
            node = node.callees.setdefault(number, _Node())
            node.nbytes += nbytes
    return _where_paths_part(root)


def _where_paths_part(root: _Node) -> _Node:
    """Leave out the calls that all known paths begin with, but for the last; all bytes stay."""
    while len(root.callees) == 1:
        (only,) = root.callees.values()
        if len(only.callees) != 1:
            break
        root = dataclasses.replace(only, nbytes=root.nbytes)
    return root


def _bands(
    lines: LineTraffic, node: _Node, left: int, lane: int, all_bytes: int
) -> Iterator[dict[str, Any]]:
    """Yield the callees of a call, the widest first, and theirs."""
    for number, callee in sorted(node.callees.items(), key=lambda item: -item[1].nbytes):
        if lane < _MOST_LANES and 0 < callee.nbytes >= _NARROWEST * all_bytes:
            line = lines.lines[number]
            place = f"{words.plain_name(Path(line.file).name, 40)}:{line.number}"
            function = words.plain_name(line.function.rpartition(".")[2], 40)
            yield {
                "left": left,
                "right": left + callee.nbytes,
                "top": lane + 0.04,
                "bottom": lane + 0.96,
                "middle": lane + 0.5,
                "fill": style.STAGE_FILLS[lane % len(style.STAGE_FILLS)],
                "name": words.plain_name(
                    f"{function} {place}", int(_MOST_LETTERS * callee.nbytes / all_bytes) or 1
                ),
                "line": f"{words.plain_name(line.file)}:{line.number}",
                "text": words.plain_name(line.text, 120),
                "size": words.size(callee.nbytes),
            }
            yield from _bands(lines, callee, left, lane + 1, all_bytes)
        left += callee.nbytes
