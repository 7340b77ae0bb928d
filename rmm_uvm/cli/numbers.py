# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command line that `click` lets through."""

from __future__ import annotations

import math

import click

__all__ = ["finite"]


def finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return a number of an option; refuse nan, which no range excludes."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds", ctx, param)
    return value
