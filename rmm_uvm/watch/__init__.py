# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Watching managed memory: samples, findings, and what is made of them.

`rmm_uvm.monitor` is the way in. Values here are plain and frozen; `Recording` is what reports,
exporters and commands work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.support.submodules import submodules_of

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
