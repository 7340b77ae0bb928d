# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a plan: its cards in a table, then answers and settings for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rmm_uvm.planner.outcome import Card, PlanFigures, Settings, Variant
from rmm_uvm.planner.request import options_text
from rmm_uvm.planner.views.charts import memory_over_time, slowdown_against_capacity
from rmm_uvm.planner.views.headline import helps_text
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.report import words
from rmm_uvm.report.document import (
    Answers,
    Block,
    Bullets,
    Code,
    Document,
    Paragraph,
    Section,
    Span,
    Table,
    Wide,
    Words,
    titled,
)
from rmm_uvm.support.machine_profile import ThirdTier
from rmm_uvm.support.units import format_bytes

__all__ = ["called", "page", "short_size", "summary"]

_MOST_STAGES = 3
_MOST_STAGES_OF_PAGE = 30
_TRAILING_SECONDS = 0.1  # less after the last event is the end of watching
_COLUMNS = (
    "card", "factor", "working\nset", "time", "times\nfitting", "to\ndevice", "to\nhost",
    "evicted", "host\nmemory",
)  # fmt: skip
_PAGE_COLUMNS = (
    "Card", "Factor", "Working set", "Predicted time", "Times fitting", "To device", "To host",
    "Evicted", "GPU faults", "Host memory",
)  # fmt: skip
_OF_THE_CARD = 3  # cells at the begin that are the same for all ways to run
_ADVISED, _OTHER = "* ", "  "
_MORE = "    "  # before what the name of a way continues with
_ONE_CARD = (
    "Name one card, --device-memory SIZE, to read why, what evicts there, and whether more data "
    "would do. --html and --json have all of it for every card."
)
_WHOLE = {"yes": "yes", "at a price": "at a price", "no": "better not"}
_UNITS = (
    "Sizes are in binary units (1 GiB = 1024³ bytes). Factor is what is allocated over what "
    "managed data can use of the card, working set what is touched in a window over the same."
)


def summary(plan: PlanFigures) -> Document:
    """Return what a terminal shows; its first line says on which machine all is simulated."""
    one_card = len(plan.cards) == 1
    moved = (*_evictions(plan), *_third_tier(plan)) if one_card else _third_tier(plan)
    evictions = [Paragraph(one, indent="  ") for one in moved]
    in_short = _short_section if one_card else _shortest_section
    notes = Section("How to read this", (Bullets(tuple(plan.notes)),))
    sections = [
        Section("", tuple(_ways(plan))),
        Section("", (Paragraph(helps_text(plan), indent="  "), *evictions)),
        *(in_short(card) for card in plan.cards),
        notes,
    ]
    if not one_card:
        sections.insert(-1, Section("", (Paragraph(_ONE_CARD, indent="  "),)))
    return Document(opening=tuple(_opening(plan)), sections=tuple(sections))


def page(plan: PlanFigures) -> Document:
    """Return the page."""
    cards = Table(
        titled(_PAGE_COLUMNS),
        tuple(_page_row(card, plan.workers) for card in plan.cards),
        "With the default settings",
    )
    return Document(
        title="Memory plan (simulated)",
        opening=tuple(_opening(plan)),
        sections=(
            Section(
                "All cards",
                (Paragraph(helps_text(plan), "verdict"), slowdown_against_capacity(plan), cards),
                "cards",
            ),
            *(_section(plan, card, number) for number, card in enumerate(plan.cards)),
            Section("How to read this", (Bullets((*plan.notes, _UNITS)),), "notes"),
        ),
    )


def called(settings: Settings) -> str:
    """Return the call that makes the settings, as Python."""
    keywords = ", ".join(f"{name}={value!r}" for name, value in _readable(settings))
    return f"rmm_uvm.reinitialize({keywords})"


def short_size(nbytes: int) -> str:
    """Return a size of 8 characters at most, with three digits or four.

    Examples
    --------
    >>> short_size(0), short_size(704 << 20), short_size(1413 << 20), short_size(1023 << 30)
    ('0 B', '704 MiB', '1.38 GiB', '1023 GiB')
    """
    number, _, unit = format_bytes(nbytes).partition(" ")
    if "." not in number or abs(float(number)) < 10:
        return f"{number} {unit}"
    return f"{float(number):.{1 if abs(float(number)) < 99.95 else 0}f} {unit}"


def _opening(plan: PlanFigures) -> Iterator[Paragraph]:
    """Yield the lines with which every form of a plan begins."""
    workload, machine = plan.workload, plan.machine
    name = words.plain_name(str(machine))
    where = words.plain_name(workload.device_name, 60) if workload.device_name else "unknown"
    allocations = "allocation" if workload.allocations == 1 else "allocations"
    each = f" by each of {plan.workers} workers" if plan.workers > 1 else ""
    simulated = Span(f"Simulated on {name}. Nothing of this ran on a GPU.", "strong")
    yield Paragraph(simulated, "simulated", indent="  ")
    # A path stays as it is, with all its spaces.
    source = words.plain_name(str(workload.source), 200)
    said = [
        f"machine: {words.plain_name(machine.gpu, 60)}, {words.plain_name(machine.link, 60)}",
        source,
        f"{workload.allocations:,} {allocations} in {_duration(workload)}{each}, recorded on: "
        f"{where}",
        f"peak {format_bytes(workload.peak_live_bytes)}, working set "
        f"{format_bytes(plan.working_set.nbytes)} in "
        f"{words.clock_text(plan.working_set.window_seconds)}; with room for everything "
        f"{words.clock_text(plan.fitting_seconds)}",
    ]
    if workload.cut_off:
        said.insert(2, f"The recording ends early: {words.plain_name(workload.cut_off, 200)}.")
    if machine.third_tier:
        said.insert(1, _behind_host(machine.third_tier, plan.workers))
    for one in said:
        yield Paragraph(one, indent="  ", fit="keep" if one == source else "wrap")


def _behind_host(tier: ThirdTier, workers: int) -> str:
    each = " for each worker" if workers > 1 else ""
    operation = words.clock_text(tier.operation_ns / 1e9) if tier.operation_ns else "nothing"
    return (
        f"third tier: {format_bytes(tier.capacity_bytes)}{each}, read at "
        f"{tier.read_bytes_per_ns:g} and written at {tier.write_bytes_per_ns:g} GB/s; an operation "
        f"takes {operation} more"
    )


def _duration(workload: Workload) -> str:
    """Return how long it took, and of how long a recording where that went on.

    Predicted times rest on the first: what comes after the last event may be waiting.
    """
    told = words.clock_text(workload.seconds)
    whole = words.clock_text(workload.whole_seconds)
    if workload.trailing_seconds < _TRAILING_SECONDS or whole == told:
        return told
    return f"{told} of a recording of {whole}"


def _is_chosen(card: Card, variant: Variant) -> bool:
    """Whether a way to run is advised: nothing is where everything runs out of memory."""
    return variant is card.advised and variant.slowdown is not None


def _ways(plan: PlanFigures) -> Iterator[Block]:
    """Yield a table with a row for each card and way to run; what is advised has a star."""
    many = any(len(card.variants) > 1 for card in plan.cards)
    rows: list[tuple[Words | Wide, ...]] = []
    for card in plan.cards:
        for variant in card.variants:
            mark = (_ADVISED if _is_chosen(card, variant) else _OTHER) if many else ""
            # A line is broken between options alone.
            name = options_text(variant.options).replace(" ", "\u00a0").replace(",\u00a0", ", ")
            head: tuple[Words | Wide, ...] = (Wide(mark + name, _OF_THE_CARD, _MORE),)
            if variant is card.defaults:
                head = (
                    mark + format_bytes(card.device_bytes).rjust(10),
                    _factor(card.oversubscription_factor),
                    _factor(card.working_set_factor),
                )
            rows.append((*head, *_cells(variant, plan.workers)))
    yield Table(titled(_COLUMNS), tuple(rows))
    if many:
        said = "* advised. Beside a card: with the default settings; below: in other ways."
        yield Paragraph(said, fit="keep")


def _cells(variant: Variant, workers: int) -> tuple[str, ...]:
    result, time = variant.result, ("out of", "memory")
    if variant.predicted_seconds is not None and variant.slowdown is not None:
        time = (words.clock_text(variant.predicted_seconds), _factor(variant.slowdown))
    moved = (
        result.to_device_bytes,
        result.to_host_bytes,
        result.evicted_bytes,
        result.host_page_bytes * workers,
    )
    return (*time, *map(short_size, moved))


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def _evicting(variant: Variant, unstaged: str) -> list[tuple[str, str]]:
    """Return stages, or size classes, and what they evicted, the most first."""
    found = [(one.name, one.evicted_bytes) for one in variant.result.stages if one.evicted_bytes]
    return [
        (words.plain_name(name, 40) if name else unstaged, format_bytes(nbytes))
        for name, nbytes in sorted(found, key=lambda row: -row[1])
    ]


def _evictions(plan: PlanFigures) -> Iterator[str]:
    kind = "size of allocation" if plan.by_size_class else "stage"
    for card in plan.cards:
        stages = [f"{name} {size}" for name, size in _evicting(card.defaults, "outside any")]
        if stages:
            more = f" and {len(stages) - _MOST_STAGES} more" if len(stages) > _MOST_STAGES else ""
            said = ", ".join(stages[:_MOST_STAGES])
            yield f"Evicted on {_size(card)}, by {kind}: {said}{more}"


def _third_tier(plan: PlanFigures) -> Iterator[str]:
    for card in plan.cards:
        result = card.defaults.result
        if result.to_third_tier_bytes:
            yield (
                f"Third tier on {_size(card)}: {format_bytes(result.to_third_tier_bytes)} written, "
                f"{format_bytes(result.from_third_tier_bytes)} read"
            )


def _answers(card: Card) -> Answers:
    return Answers(tuple((one.question, one.text) for one in (card.splitting, card.more_data)))


def _short_section(card: Card) -> Section:
    keywords = (f"    {name}={value!r}," for name, value in _readable(card.settings))
    lines = ("rmm_uvm.reinitialize(", *keywords, ")")
    blocks: list[Block] = [_answers(card), Code(called(card.settings), lines)]
    blocks += [
        Paragraph(f"{name} {value}: {reason}", lead="  ", indent="    ")
        for name, value, reason in _setting_rows(card.settings)
    ]
    return Section(f"On {_size(card)}", tuple(blocks), indent="  ")


def _shortest_section(card: Card) -> Section:
    """Return whether the input may stay whole on a card, and the call, where there are others."""
    slowdown = card.advised.slowdown
    if slowdown is None:
        said = "The whole input: no, it runs out of memory."
    elif card.oversubscription_factor <= 1 and card.splitting.verdict == "yes":
        said = "The whole input: yes, it fits."
    else:
        whole = _WHOLE[card.splitting.verdict]
        said = f"The whole input: {whole}, {slowdown:.2f} times as long as if it fitted."
    parts = card.settings.parts
    if parts > 1:
        said += f" In {parts} parts each fits, if memory shrinks with the part."
    call = Paragraph(called(card.settings), indent="    ")
    return Section(f"On {_size(card)}", (Paragraph(said, indent="  "), call), indent="  ")


def _section(plan: PlanFigures, card: Card, number: int) -> Section:
    settings = Table(
        titled(("Setting", "Value", "Why"), right=False),
        tuple(_setting_rows(card.settings)),
        "What to set, and why",
    )
    blocks: list[Block] = [_answers(card), Code(called(card.settings), ()), settings]
    if len(card.variants) > 1:
        titles = ("Way to run", "Predicted time", "Times fitting", "To device", "Evicted")
        rows = (
            (
                options_text(one.options) + " (advised)" * _is_chosen(card, one),
                *_times(one),
                words.size(one.result.to_device_bytes),
                words.size(one.result.evicted_bytes),
            )
            for one in card.variants
        )
        blocks.append(Table(titled(titles), tuple(rows), "Ways to run it there"))
    blocks.append(memory_over_time(card, number, plan.workload.whole_seconds))
    if stages := _evicting(card.defaults, "outside any stage"):
        evicted = titled(("Size of allocation" if plan.by_size_class else "Stage", "Evicted"))
        blocks.append(Table(evicted, tuple(stages[:_MOST_STAGES_OF_PAGE]), "What evicted"))
    return Section(f"On {_size(card)}", tuple(blocks), f"card-{card.device_bytes}")


def _page_row(card: Card, workers: int) -> tuple[str, ...]:
    result = card.defaults.result
    return (
        _size(card),
        f"{card.oversubscription_factor:.2f}",
        f"{card.working_set_factor:.2f}",
        *_times(card.defaults),
        words.size(result.to_device_bytes),
        words.size(result.to_host_bytes),
        words.size(result.evicted_bytes),
        words.count(result.gpu_faults),
        words.size(result.host_page_bytes * workers),
    )


def _times(variant: Variant) -> tuple[str, str]:
    if variant.predicted_seconds is None or variant.slowdown is None:
        return "out of memory", words.UNKNOWN
    return words.clock_text(variant.predicted_seconds), f"{variant.slowdown:.2f}"


def _setting_rows(settings: Settings) -> list[tuple[str, str, str]]:
    """Return name, value and reason of every setting."""
    values = {
        "pool sizes": "left out",
        "initial_pool_size": format_bytes(settings.initial_pool_bytes or 0),
        "maximum_pool_size": format_bytes(settings.maximum_pool_bytes or 0),
        "prefetch": settings.prefetch,
        "uses": "announced",
        "eviction": settings.eviction or "",
        "device_budget": format_bytes(settings.device_budget_bytes or 0),
        "enough memory": format_bytes(settings.enough_bytes),
        "ipc_pool_size": format_bytes(settings.ipc_pool_bytes),
        "host_sharers": str(settings.host_sharers),
        "uvm_perf_prefetch_threshold": f"{settings.driver_prefetch_threshold} %",
        "parts": str(settings.parts),
    }
    return [(name, values[name], reason) for name, reason in settings.reasons]


def _readable(settings: Settings) -> Iterable[tuple[str, object]]:
    """Yield keywords with sizes as people write them, where that is exact."""
    for name, value in settings.keywords().items():
        if name.endswith(("_size", "_budget")) and value % (1 << 20) == 0:
            yield name, f"{value >> 20}MiB"
        else:
            yield name, value


def _size(card: Card) -> str:
    return format_bytes(card.device_bytes)
