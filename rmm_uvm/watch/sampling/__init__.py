# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sources of the figures that a monitor watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.support.submodules import submodules_of

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
