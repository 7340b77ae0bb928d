# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The RAPIDS mortgage pipeline: data generator, ETL, data conversion (PREP) and training.

The ETL is written once, against the small vocabulary of :mod:`rmm_uvm_mortgage.engines`, and is
run by cuDF on a GPU or by pandas without one. Nothing here chooses a memory resource: the
pipeline allocates from whichever one is current.

See Also
--------
rmm_uvm_mortgage.generate : writes a data set in the original file format.
rmm_uvm_mortgage.pipeline : runs all stages and reports on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.support.submodules import submodules_of

DISTRIBUTION = "rmm-uvm-mortgage"
"""What pip calls this package."""

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
