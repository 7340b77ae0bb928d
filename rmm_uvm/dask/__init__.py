# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask workers on managed memory: a preload, a plugin, a cluster in one line.

Importing it needs Dask alone: neither RMM nor a GPU, so schedulers and clients can.
"""

from __future__ import annotations

from rmm_uvm.dask.preload import dask_setup, dask_teardown

__all__ = ["dask_setup", "dask_teardown"]
