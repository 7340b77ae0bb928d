# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of the monitor share besides fixtures."""

from __future__ import annotations

from collections.abc import Callable

from rmm_uvm.recording.finding import Finding
from rmm_uvm.watch.monitor import Monitor

MIB = 1 << 20


Make = Callable[..., Monitor]


def advance(monitor: Monitor, seconds: float = 0.1) -> tuple[Finding, ...]:
    """Let time pass, and have the samples looked at in this thread."""
    assert monitor._clock is not None
    monitor._clock.advance(seconds)
    return monitor._tick()
