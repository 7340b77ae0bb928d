# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as plain values for other programs; sizes in bytes, None for what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

from rmm_uvm.planner.outcome import Card, PlanFigures, Variant
from rmm_uvm.planner.workload.result import Timeline

__all__ = ["FORMAT_VERSION", "as_dict"]

FORMAT_VERSION = 1
"""Grows when a key changes its meaning or goes away, not when one is added."""


def as_dict(plan: PlanFigures) -> dict[str, Any]:
    """Return all figures of a plan, ready for JSON; names are as they were recorded."""
    workload = plan.workload
    return {
        "format": "rmm_uvm plan",
        "format_version": FORMAT_VERSION,
        "simulated": True,
        "machine": dataclasses.asdict(plan.machine),
        "workers": plan.workers,
        "workload": {
            "source": str(workload.source),
            "kind": workload.kind,
            "touches_assumed": workload.touches_assumed,
            "cut_off": workload.cut_off,
            "allocations": workload.allocations,
            "allocated_bytes": workload.allocated_bytes,
            "peak_live_bytes": workload.peak_live_bytes,
            "seconds": workload.seconds,
            "trailing_seconds": workload.trailing_seconds,
            "device_name": workload.device_name,
            "device_bytes": workload.device_bytes,
            "working_set_bytes": plan.working_set.nbytes,
            "working_set_window_seconds": plan.working_set.window_seconds,
        },
        "fitting_seconds": plan.fitting_seconds,
        "host_bytes": plan.host_bytes,
        "enough_bytes": plan.enough_bytes,
        "tolerable_bytes": plan.tolerable_bytes,
        "curve": [{"capacity_bytes": size, "slowdown": slow} for size, slow in plan.curve],
        "helps": None if plan.helps is None else dataclasses.asdict(plan.helps),
        "by_size_class": plan.by_size_class,
        "cards": [_card(card) for card in plan.cards],
        "notes": list(plan.notes),
    }


def _card(card: Card) -> dict[str, Any]:
    settings = dataclasses.asdict(card.settings)
    settings["reasons"] = [{"setting": name, "reason": why} for name, why in card.settings.reasons]
    return {
        "device_bytes": card.device_bytes,
        "capacity_bytes": card.capacity_bytes,
        "oversubscription_factor": card.oversubscription_factor,
        "working_set_factor": card.working_set_factor,
        "host_bytes": card.host_bytes,
        "variants": [_variant(one, card) for one in card.variants],
        "pool_out_of_memory": card.pool_out_of_memory,
        "settings": settings,
        "reinitialize_keywords": card.settings.keywords(),
        "ways": [dataclasses.asdict(way) for way in card.ways],
        "splitting": dataclasses.asdict(card.splitting),
        "more_data": dataclasses.asdict(card.more_data),
    }


def _variant(variant: Variant, card: Card) -> dict[str, Any]:
    result = dict(vars(variant.result))
    if not variant.result.to_third_tier_bytes:  # the host had room for everything
        del result["to_third_tier_bytes"], result["from_third_tier_bytes"]
    result["stages"] = [dataclasses.asdict(stage) for stage in variant.result.stages]
    # Of all ways to run, the file would be megabytes.
    drawn = variant is card.defaults or variant is card.advised
    result["timeline"] = _timeline(variant.result.timeline) if drawn else None
    if variant.result.out_of_memory is not None:
        result["out_of_memory"] = dataclasses.asdict(variant.result.out_of_memory)
    return {
        "options": dataclasses.asdict(variant.options),
        "defaults": variant is card.defaults,
        "advised": variant is card.advised,
        "predicted_seconds": variant.predicted_seconds,
        "slowdown": variant.slowdown,
        "result": result,
    }


def _timeline(timeline: Timeline) -> dict[str, list[float] | list[int]]:
    return {name: column.tolist() for name, column in vars(timeline).items()}
