# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measuring this machine's constants, in under a minute and without filling the card.

Covers one GPU: figures are taken (`rmm_uvm.simulator.measuring.procedure`), and constants follow
from them (`rmm_uvm.simulator.measuring.derivation`). Does not cover evictions, which need a full
card and are modelled as the migrations that they are; other GPUs; and what takes hours, such as
faults with every number of blocks and pages.

See Also
--------
rmm_uvm.cli.doctor : ``rmm-uvm doctor --measure``.
"""

from __future__ import annotations

from rmm_uvm.simulator.measuring.derivation import Derived, derive
from rmm_uvm.simulator.measuring.figures import MeasuredFigures, Timing
from rmm_uvm.simulator.measuring.measure import Measurement, measure, similar_machine

__all__ = [
    "Derived",
    "MeasuredFigures",
    "Measurement",
    "Timing",
    "derive",
    "measure",
    "similar_machine",
]
