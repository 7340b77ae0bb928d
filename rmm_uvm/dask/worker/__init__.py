# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs on a Dask worker: its pool, its figures and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.support.submodules import submodules_of

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
