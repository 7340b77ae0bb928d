# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: what a recorded workload would do on another card.

A workload is read from a trace or from RMM's log, replayed on the simulated device once for each
capacity and policy that was asked for, and what was seen is told with the settings it speaks for.
"""

from __future__ import annotations
