# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The conclusion of a policy from samples: a kind, a figure, its threshold, a remedy."""

from __future__ import annotations

import dataclasses

from rmm_uvm import errors

__all__ = ["WARNING_OF", "Finding"]

WARNING_OF: dict[str, type[errors.FindingWarning]] = {
    "footprint": errors.OversubscriptionWarning,
    "eviction": errors.EvictionWarning,
    "amplification": errors.AmplificationWarning,
    "host_memory": errors.HostMemoryWarning,
    "device_taken": errors.DeviceTakenWarning,
    "prefetch": errors.PrefetchEvictionWarning,
    "budget": errors.BudgetWarning,
    "prediction": errors.PredictionWarning,
    "waiting": errors.BudgetWarning,
    "monitor": errors.MonitorWarning,
}
"""The warning that each kind of finding becomes. Of "replayed" nobody is warned: it is found when a
program has ended."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One conclusion.

    Parameters
    ----------
    kind : str
        A key of `WARNING_OF`, or "replayed": what would have helped, tried on a model.
    device_id : int
        CUDA ordinal.
    time_seconds : float
        When, since the monitor began.
    value, threshold : float
        The figure, and what it passed; both in the unit that the message names.
    message : str
        What is the case, with the figures: one sentence without a full stop.
    remedy : str
        The one thing to do about it: one sentence without a full stop.
    """

    kind: str
    device_id: int
    time_seconds: float
    value: float
    threshold: float
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"device {self.device_id}: {self.message}; {self.remedy}"
