# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a plan: one file with everything in it."""

from __future__ import annotations

from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.planner.outcome import Card, PlanFigures, Variant
from rmm_uvm.planner.request import options_text
from rmm_uvm.planner.views.headline import helps_text
from rmm_uvm.planner.views.text import (
    called,
    evicting_stages,
    opening,
    setting_rows,
)
from rmm_uvm.report import template, words
from rmm_uvm.report.page import placed
from rmm_uvm.support.units import format_bytes

__all__ = ["page"]

_CARD_HEADERS = (
    "Card", "Factor", "Working set", "Predicted time", "Times fitting", "To device", "To host",
    "Evicted", "GPU faults", "Host memory",
)  # fmt: skip
_VARIANT_HEADERS = ("Way to run", "Predicted time", "Times fitting", "To device", "Evicted")
_MOST_STAGES = 30


def page(plan: PlanFigures) -> str:
    """Return the page.

    Raises
    ------
    AvailabilityError
        Bokeh is not installed.
    """
    try:
        from rmm_uvm.planner.views.charts import memory_over_time, slowdown_against_capacity

        drawn = {-1: [slowdown_against_capacity(plan)]}
        for number, card in enumerate(plan.cards):
            drawn[number] = [memory_over_time(card, number, plan.workload.whole_seconds)]
    except ImportError as error:
        raise AvailabilityError(template.INSTALL_HINT) from error
    script, shown = placed(drawn)
    library, quiet, printing = template.library()
    simulated, *described = opening(plan)
    variables = {
        "title": "Memory plan (simulated)",
        "simulated": simulated,
        "described": described,
        "helps": helps_text(plan),
        "charts": shown[-1],
        "headers": _CARD_HEADERS,
        "rows": [_row(card, plan.workers) for card in plan.cards],
        "cards": [_card(plan, card, shown[number]) for number, card in enumerate(plan.cards)],
        "variant_headers": _VARIANT_HEADERS,
        "stage_headers": ("Size of allocation" if plan.by_size_class else "Stage", "Evicted"),
        "notes": plan.notes,
    }
    scripts = [library, quiet + script, printing]
    return template.render("plan.html", variables, scripts, package="rmm_uvm.planner.views")


def _row(card: Card, workers: int) -> tuple[str, ...]:
    result = card.defaults.result
    return (
        format_bytes(card.device_bytes),
        f"{card.oversubscription_factor:.2f}",
        f"{card.working_set_factor:.2f}",
        *_times(card.defaults),
        words.size(result.to_device_bytes),
        words.size(result.to_host_bytes),
        words.size(result.evicted_bytes),
        words.count(result.gpu_faults),
        words.size(result.host_page_bytes * workers),
    )


def _card(plan: PlanFigures, card: Card, charts: Any) -> dict[str, Any]:
    stages = evicting_stages(card.defaults)
    return {
        "name": format_bytes(card.device_bytes),
        "id": f"card-{card.device_bytes}",
        "answers": [(one.question, one.text) for one in (card.splitting, card.more_data)],
        "call": called(card.settings),
        "settings": setting_rows(card.settings),
        "variants": [
            (
                options_text(one.options)
                + (" (advised)" if one is card.advised and one.slowdown is not None else ""),
                *_times(one),
                words.size(one.result.to_device_bytes),
                words.size(one.result.evicted_bytes),
            )
            for one in card.variants
        ],
        "stages": [
            (words.plain_name(name) if name else "outside any stage", words.size(nbytes))
            for name, nbytes in stages[:_MOST_STAGES]
        ],
        "charts": charts,
    }


def _way(card: Card, variant: Variant) -> str:
    # Where everything runs out of memory nothing is advised.
    advised = variant is card.advised and variant.slowdown is not None
    return options_text(variant.options) + " (advised)" * advised


def _times(variant: Variant) -> tuple[str, str]:
    if variant.predicted_seconds is None or variant.slowdown is None:
        return "out of memory", words.UNKNOWN
    return words.clock_text(variant.predicted_seconds), f"{variant.slowdown:.2f}"
