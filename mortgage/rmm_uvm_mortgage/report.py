# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of the mortgage pipeline as text for a terminal; legible at 80 columns, without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rmm_uvm.report.document import (
    Block,
    Document,
    Paragraph,
    Section,
    Span,
    Table,
    TableColumn,
    Words,
)
from rmm_uvm.support.units import format_bytes
from rmm_uvm_mortgage.compare_memory import ComparedRun
from rmm_uvm_mortgage.fragmentation import FragmentationResult
from rmm_uvm_mortgage.memory import BUDGET_WORDS, MEMORIES
from rmm_uvm_mortgage.run import default_device_reason
from rmm_uvm_mortgage.run_report import RunReport

SIMULATED_LINES = (
    "real: features and model (pandas and XGBoost on the CPU), RMM's pool, our code",
    "modelled: where pages reside, what migrates, and the time that takes",
    "not shown: how fast a GPU computes; wall seconds are those of this CPU",
)

_ONE_RUN_EACH = (
    "seconds: one run each, kernels compiled in the first; benchmarks/mortgage/pipeline.py\n"
    "interleaves many"
)
_OUTCOME_LEGEND = "stops: out of memory; peak: most allocated; factor: peak / device memory"
_TEXT_COLUMNS = ("stage", "memory", "split", "result", "worker")


def simulated_lines(capacity_bytes: int, *, by_default: bool) -> Document:
    """Return what stands below the first line of a simulated run.

    Parameters
    ----------
    capacity_bytes : int
        Memory of the simulated device.
    by_default : bool
        Whether it follows from the data.
    """
    why = default_device_reason(capacity_bytes) if by_default else "as asked"
    return indented((*SIMULATED_LINES, f"its memory: {format_bytes(capacity_bytes)}, {why}"))


def indented(lines: Iterable[str]) -> Document:
    """Return lines that belong to the one above them."""
    return Document((), tuple(Paragraph(line, lead="  ", indent="  ") for line in lines))


def run_page(report: RunReport) -> Document:
    """Return everything about one run."""
    parts = len(report.pipeline.parts)
    outcome = f"{parts} part{'s' if parts > 1 else ''}, {_outcome(report)}"
    return Document(
        (
            Section(f"{report.memory}: {report.chain}", (Paragraph(outcome),)),
            Section("", stage_table(report)),
            lines(_summary(report)),
        )
    )


def lines(said: Iterable[str]) -> Section:
    """Return a section of sentences."""
    return Section("", tuple(map(Paragraph, said)))


def stage_table(report: RunReport) -> tuple[Block, ...]:
    """Return a row for each stage, and what the columns are."""
    unit = SizeUnit.that_suits(_largest_bytes(report))
    modelled = ["modelled\ns"] if report.simulated else []
    sizes = [f"{title}\n{unit.name}" for title in ("in", "out")]
    rows = []
    for stage in report.stages:
        seconds = [f"{stage.wall_seconds:.2f}"]
        if report.simulated:
            seconds.append(f"{stage.modelled_seconds:.3f}")
        rows.append(
            (
                stage.name + (f" x{stage.runs}" if stage.runs > 1 else ""),
                *seconds,
                unit.text(stage.peak_bytes),
                f"{stage.oversubscription_factor(report.capacity_bytes):.2f}",
                unit.text(stage.host_to_device_bytes),
                unit.text(stage.device_to_host_bytes),
            )
        )
    titles = ["stage", "wall\ns", *modelled, f"peak\n{unit.name}", "factor\n", *sizes]
    legend = "peak: most allocated; factor: peak / device memory; in, out: bytes migrated"
    return plain_table(titles, rows), Paragraph(Span(legend, "faint"))


@dataclass(frozen=True, slots=True)
class SizeUnit:
    """Unit of all sizes of a table, so that they can be compared by eye and stay narrow."""

    name: str
    nbytes: int
    decimals: int

    @classmethod
    def that_suits(cls, largest_bytes: int) -> SizeUnit:
        """Return MiB, or GiB from about 10 GiB on."""
        return cls("MiB", 1 << 20, 1) if largest_bytes < 10_000 << 20 else cls("GiB", 1 << 30, 2)

    def text(self, size_bytes: int) -> str:
        """Return a size without its unit; "-" for none."""
        return f"{size_bytes / self.nbytes:.{self.decimals}f}" if size_bytes else "-"


def _largest_bytes(report: RunReport) -> int:
    return max(report.peak_bytes, *report.migrated_bytes)


def comparison_page(runs: Sequence[ComparedRun], training_rows: int) -> Document:
    """Return everything about several runs.

    Parameters
    ----------
    runs : sequence of ComparedRun
        Not empty.
    training_rows : int
        Rows of the whole training set.
    """
    simulated = runs[0].report.simulated
    unit = SizeUnit.that_suits(max(_largest_bytes(run.report) for run in runs))
    outcomes, moved = [], []
    for run in runs:
        report, name = run.report, (run.report.memory, _split(run.planned.split))
        factor = f"{report.oversubscription_factor:.2f}"
        outcomes.append((*name, _outcome(report), unit.text(report.peak_bytes), factor))
        moved.append(
            (
                *name,
                *map(unit.text, report.migrated_bytes),
                *([f"{report.modelled_seconds:.3f}"] if simulated else []),
                *(f"{s:.1f}" if s else "-" for s in _three_seconds(report)),
                _trains_on(report, training_rows),
            )
        )
    modelled = ["modelled\ns"] if simulated else []
    sizes = [f"{title}\n{unit.name}" for title in ("in", "out")]
    columns = [*sizes, *modelled, "ETL\ns", "PREP\ns", "TRAIN\ns", "largest\nset"]
    legends = ["largest set: training set that would fit, as a multiple of the whole"]
    legends += [] if simulated else [_ONE_RUN_EACH]
    shown = next((run for run in runs if run.report.memory == "managed"), runs[0])
    return Document(
        (
            *([lines(against)] if (against := _against_stock(runs)) else []),
            Section(
                "Does it finish?",
                (
                    plain_table(
                        ["memory", "split", "result", f"peak\n{unit.name}", "factor\n"], outcomes
                    ),
                    Paragraph(Span(_OUTCOME_LEGEND, "faint")),
                    *map(Paragraph, _outcome_notes(runs)),
                ),
            ),
            Section(
                "What moved" + (", and the modelled time of that" if simulated else ""),
                (
                    plain_table(["memory", "split", *columns], moved),
                    *(Paragraph(Span(legend, "faint")) for legend in legends),
                ),
            ),
            lines(_comparison_notes(runs)),
            Section(f"{shown.title}, stage by stage", stage_table(shown.report)),
        )
    )


def _against_stock(runs: Sequence[ComparedRun]) -> list[str]:
    """Return a sentence on what our pool moves and what RMM's managed memory does; or none."""
    whole = {
        run.report.memory: run.report
        for run in runs
        if run.planned.split == 1 and run.report.simulated and any(run.report.migrated_bytes)
    }
    ours = whole.get("managed")
    stock = [whole[name] for name in ("rmm-managed", "rmm-prefetch") if name in whole]
    if ours is None or not stock or ours.modelled_seconds <= 0:
        return []
    moved_bytes = sum(ours.migrated_bytes)
    told = [
        f"{each.memory} {format_bytes(sum(each.migrated_bytes))} in {each.modelled_seconds:.3f} s "
        f"({sum(each.migrated_bytes) / moved_bytes:.1f} and "
        f"{each.modelled_seconds / ours.modelled_seconds:.1f} times as much)"
        for each in stock
    ]
    return [
        f"Past the edge our pool (managed) moves {format_bytes(moved_bytes)} in "
        f"{ours.modelled_seconds:.3f} s of modelled time, {' and '.join(told)}"
    ]


def _outcome(report: RunReport) -> str:
    ended = report.pipeline.out_of_memory
    return "completes" if ended is None else f"stops in {ended.stage}"


def _split(split: int) -> str:
    return "unsplit" if split == 1 else f"in {split}"


def _trains_on(report: RunReport, training_rows: int) -> str:
    """Return the largest training set as a multiple of the one at hand."""
    if report.largest_training_rows is None:
        return "-"
    return f"x{report.largest_training_rows / training_rows:.2f}" if training_rows else "-"


def _three_seconds(report: RunReport) -> Iterable[float]:
    pipeline = report.pipeline
    return pipeline.etl_seconds, pipeline.prep_seconds, pipeline.train_seconds


def _summary(report: RunReport) -> list[str]:
    """Return the lines below the table of stages."""
    pipeline = report.pipeline
    lines = []
    if pipeline.out_of_memory is not None:
        ended = pipeline.out_of_memory
        where = f" of part {ended.part}" if ended.part else ""
        lines.append(f"Out of memory in {ended.stage}{where}: {short_message(ended.message)}")
    if report.features_against_pandas:
        lines.append(
            f"Features: {pipeline.feature_rows:,} rows, "
            f"{against_pandas(report.features_against_pandas)}"
        )
    if pipeline.quality is not None and pipeline.quality.auc is not None:
        lines.append(
            f"Model: trained on {pipeline.training_rows:,} rows of {pipeline.training_parts} "
            f"part{'s' if pipeline.training_parts > 1 else ''}; AUC {pipeline.quality.auc:.4f} "
            f"on {pipeline.quality.rows:,} others"
        )
    if report.largest_training_rows is not None:
        lines.append(
            f"Largest training set that this memory holds: {report.largest_training_rows:,} rows"
        )
    if xgboost := _xgboost(report):
        lines.append(xgboost)
    if hand_over := _hand_over(report):
        lines.append(hand_over)
    return lines


def _xgboost(report: RunReport) -> str:
    held = [
        f"{format_bytes(stage.xgboost_peak_bytes)} in {stage.name}"
        for stage in report.stages
        if stage.xgboost_peak_bytes and stage.name in ("prep", "train")
    ]
    return f"XGBoost's cudaMalloc, not in the footprint: {', '.join(held)}" if held else ""


def short_message(message: str) -> str:
    """Return what a memory resource said, without the place in its source."""
    _, found, rest = message.partition(".cpp:")
    return rest.partition(": ")[2] if found else message


def against_pandas(how: str) -> str:
    """Return how features compare with plain pandas, from `Reference.describe`, for a page."""
    if how.startswith("different"):
        return f"NOT those of plain pandas; {how}"
    return "identical to plain pandas" if how == "identical" else f"{how}, to plain pandas"


def _hand_over(report: RunReport) -> str:
    """Return what PREP did to the chain's source."""
    prep = next((s for s in report.stages if s.name == "prep"), None)
    if prep is None or not report.simulated:
        return ""
    calls = prep.upstream_allocations
    if any(stage.name == "teardown_pool" for stage in report.stages):
        return f"PREP: pool torn down for XGBoost; {calls:,} calls of cudaMalloc"
    source = "cudaMalloc" if report.memory.startswith("cuda") else "cudaMallocManaged"
    moved = (prep.host_to_device_bytes, prep.device_to_host_bytes)
    return (
        f"PREP: nothing torn down; {calls:,} calls of {source}, "
        f"{format_bytes(moved[0])} in, {format_bytes(moved[1])} out"
    )


def _outcome_notes(runs: Sequence[ComparedRun]) -> list[str]:
    """Return what the first table cannot say."""
    notes = []
    cuda = [r.report.largest_training_rows for r in runs if r.report.memory == "cuda-pool"]
    ours = [r.report.largest_training_rows for r in runs if r.report.memory == "managed"]
    most, least = max(filter(None, ours), default=0), max(filter(None, cuda), default=0)
    if most and least:
        notes.append(
            f"Largest training set: {most:,} rows with managed, {least:,} with cuda-pool, "
            f"{most / least:.2f} times as many"
        )
    return notes


def _comparison_notes(runs: Sequence[ComparedRun]) -> list[str]:
    compared = [r.report.features_against_pandas for r in runs if r.report.features_against_pandas]
    notes = []
    differing = [how for how in compared if how.startswith("different")]
    if differing:
        notes += [f"Features {against_pandas(how)}" for how in differing]
    elif compared:
        same = "identical" if set(compared) == {"identical"} else "equal to 1e-6"
        notes.append(
            f"Features of all {len(compared)} runs that finished the ETL: {against_pandas(same)}"
        )
    calls = {
        run.report.memory: sum(stage.upstream_allocations for stage in run.report.stages)
        for run in runs
    }
    if {"managed", "managed-nopool"} <= set(calls) and calls["managed-nopool"]:
        notes.append(
            f"cudaMallocManaged: {calls['managed']:,} calls with a pool, "
            f"{calls['managed-nopool']:,} without"
        )
    keeping = [
        run.report.memory
        for run in runs
        if run.report.simulated
        and MEMORIES[run.report.memory].pooled
        and any(run.report.migrated_bytes)
        and BUDGET_WORDS not in run.report.chain
    ]
    if keeping:
        names = ", ".join(dict.fromkeys(keeping))
        notes.append(f"{names}: freed memory stays on the device, and leaves as if it were alive")
    if any(run.report.simulated and run.report.memory == "rmm-prefetch" for run in runs):
        notes.append("rmm-prefetch: RMM's own needs a GPU; shown is our adaptor, set to always")
    for run in runs:
        if run.report.memory in ("cuda-pool", "managed") and (line := _hand_over(run.report)):
            notes.append(f"{run.report.memory} {_split(run.planned.split)}, {line}")
    return notes


def fragmentation_lines(cases: Sequence[FragmentationResult]) -> Document:
    """Return a line on each memory's way through the fragmentation case."""
    first = cases[0]
    told = [
        f"asked for {format_bytes(first.asked_bytes)}; {format_bytes(first.free_bytes)} of "
        f"{format_bytes(first.device_bytes)} are free, in pieces of "
        f"{format_bytes(first.piece_bytes)}"
    ]
    for case in cases:
        moved = f"completes; {format_bytes(case.host_to_device_bytes)} in, "
        moved += f"{format_bytes(case.device_to_host_bytes)} out"
        told.append(f"{case.memory}: {moved if case.completed else 'out of memory'}")
    title = "Fragmentation: enough is free, but not in one piece"
    return Document((Section(title, tuple(map(Paragraph, told))),))


def plain_table(titles: Sequence[str], rows: Iterable[tuple[Words, ...]]) -> Table:
    """Return a table; numbers on the right."""
    columns = (TableColumn(title, right=title.strip() not in _TEXT_COLUMNS) for title in titles)
    return Table(tuple(columns), tuple(rows))
