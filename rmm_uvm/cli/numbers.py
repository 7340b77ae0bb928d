# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command line that `click` lets through, or refuses in words of its own."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["Pid", "finite"]


def finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return a number of an option; refuse nan, which no range excludes."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds", ctx, param)
    return value


class Pid(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2
    """The number of a process."""

    name = "pid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, > 0."""
        text = str(value)
        if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) < 1 << 31):
            self.fail(f"{text!r} is no PID: a number such as 4242 is needed", param, ctx)
        return int(text)
