# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The protocol of figures past the edge of a budget: who is measured, who judges, what counts.

A side is a program under some memory (`sides`). `measure` runs it in a process of its own, `runner`
runs all sides in turn. Two judges say what it had on the device: the page tables of the CPU, beside
the run (`page_tables`), and the driver's counter in a twin of the run that ends there (`stops`).
`verdicts` says what is a result, and why the rest is none; `document` makes the rows of a file.
"""

from benchmarks.common.past_the_edge.verdicts import Verdict, is_result, verdict_of

__all__ = ["Verdict", "is_result", "verdict_of"]
