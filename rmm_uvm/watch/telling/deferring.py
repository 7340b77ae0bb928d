# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings where several monitors watch the same device: one of them speaks.

``rmm-uvm run`` watches a program that may call `rmm_uvm.reinitialize`, which starts a monitor, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmm_uvm.recording.finding import Finding
from rmm_uvm.watch.telling.delivery import Delivery, OnFinding

__all__ = ["DeferringDelivery"]


class DeferringDelivery(Delivery):
    """Hands on only what nobody else says at that moment; all of it stays recorded.

    Parameters
    ----------
    on_finding : {"warn", "raise", "log"}, callable or None
        As for `Delivery`.
    others_warn : callable
        Whether another monitor warns of a device now.
    """

    def __init__(self, on_finding: OnFinding, others_warn: Callable[[int], bool]) -> None:
        super().__init__(on_finding)
        self._others_warn = others_warn

    def deliver(self, findings: Iterable[Finding]) -> None:
        """Hand findings on."""
        super().deliver([one for one in findings if not self._others_warn(one.device_id)])
