# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a trace's header says about the run, taken with care: a file can say anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import RecordedDevice

__all__ = ["as_seconds", "as_texts", "devices_of", "sources_of"]

_MOST = 1024  # entries of a list or mapping; a header can hold more, but no machine has them


def devices_of(facts: Mapping[str, Any], *rows: Any) -> tuple[RecordedDevice, ...]:
    """Return the devices that the header describes, and those that rows name besides."""
    listed = facts.get("devices")
    described: dict[int, RecordedDevice] = {}
    for one in listed[:_MOST] if isinstance(listed, list) else []:
        if isinstance(one, dict) and _is_count(one.get("device_id")):
            described.setdefault(one["device_id"], _device(one))
    seen = {int(number) for part in rows for number in np.unique(part["device_id"])[:_MOST]}
    for number in sorted(seen - set(described)):
        described[number] = RecordedDevice(number, f"device {number}", "", 0, 0)
    return tuple(described[number] for number in sorted(described))


def sources_of(facts: Mapping[str, Any]) -> dict[str, Availability]:
    """Return the sources with their reasons: ``{name: [available, reason]}`` in the header."""
    listed = facts.get("sources")
    return {
        str(name): Availability(bool(value[0]), str(value[1]))
        for name, value in _entries(listed)
        if isinstance(value, list) and len(value) == 2
    }


def as_texts(value: Any) -> dict[str, str]:
    """Return a mapping as text; empty if it is none."""
    return {str(name): str(text) for name, text in _entries(value)}


def as_seconds(value: Any) -> float:
    """Return a length of time; 0 if it is none."""
    good = isinstance(value, int | float) and 0 <= value < 1e9 and math.isfinite(value)
    return float(value) if good else 0.0


def _device(one: Mapping[str, Any]) -> RecordedDevice:
    chain = one.get("chain")
    return RecordedDevice(
        device_id=one["device_id"],
        name=str(one.get("name", "")),
        uuid=str(one.get("uuid", "")),
        total_bytes=_count(one.get("total_bytes")),
        capacity_bytes=_count(one.get("capacity_bytes")),
        simulated=one.get("simulated") is True,
        chain=tuple(str(name) for name in chain[:_MOST]) if isinstance(chain, list) else (),
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _count(value: Any) -> int:
    return int(value) if _is_count(value) else 0


def _entries(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items())[:_MOST] if isinstance(value, dict) else []
