# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Options that may be given once: click takes the last of several values without a word."""

from __future__ import annotations

import click

__all__ = ["OnceCommand"]


class OnceCommand(click.Command):
    """A command that refuses an option with a value that is given twice, by either of its names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, after a look at what is given how often."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        seen: list[click.Parameter] = []
        for one in given:
            if not isinstance(one, click.Option) or one.is_flag or one.multiple or one.count:
                continue
            if one in seen and not ctx.resilient_parsing:
                others = f" (or {', '.join(one.opts[1:])})" if len(one.opts) > 1 else ""
                listed = ", its values with commas between them" * bool(
                    getattr(one.type, "takes_commas", False)
                )
                raise click.UsageError(
                    f"{one.opts[0]}{others} is given twice: give it once{listed}", ctx
                )
            seen.append(one)
        return super().parse_args(ctx, args)
