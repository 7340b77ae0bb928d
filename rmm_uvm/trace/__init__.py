# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of a program's memory: what was allocated, freed and touched, with stages and samples.

Covers reading traces and RMM's own logs, and writing traces of programs that something else has
recorded, such as lists of kernels (`KernelTraceWriter`). Does not cover attaching a writer to a
running program; see `rmm_uvm.monitor` and ``rmm-uvm run --trace``.

See Also
--------
docs/understand/trace-format.md : the format.
"""

from __future__ import annotations

from rmm_uvm._lib.trace import TraceWriter
from rmm_uvm.trace.contents import Trace
from rmm_uvm.trace.events import EVENT_DTYPE, EventKind
from rmm_uvm.trace.kernels import KernelTraceWriter
from rmm_uvm.trace.reader import iter_events, read
from rmm_uvm.trace.rmm_log import read_rmm_log

__all__ = [
    "EVENT_DTYPE",
    "EventKind",
    "KernelTraceWriter",
    "Trace",
    "TraceWriter",
    "iter_events",
    "read",
    "read_rmm_log",
]
