# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Options of commands that are settings of the pool, or sizes: read as everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.kinds import AnyOf, Count, Devices, Kind, OneOf, Size
from rmm_uvm.support.settings import Setting

__all__ = ["BYTES", "KindType", "Refused", "option_of", "settings_options"]


class Refused(click.ClickException):
    """Something that was asked for cannot be used; nothing was run. One line says what."""

    exit_code = 2  # as of wrong usage: 1 may be the program's own


class KindType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2
    """The type of an option: text that a kind of values reads."""

    name = "value"

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the plain value; `Refused` if the text is none."""
        del ctx
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._kind.read_text(value.strip(), param.opts[0] if param else "value")
        except ConfigurationError as error:
            raise Refused(str(error)) from None


BYTES = KindType(Size(is_fraction=False))
"""Of sizes that no device is meant with."""


def option_of(setting: Setting, more: str = "") -> Callable[[Any], Any]:
    """Return the option of a setting, called as that of ``rmm-uvm run``; None without it.

    Parameters
    ----------
    setting : Setting
        With an option.
    more : str
        What its help says besides; by default what is used without it.
    """
    words = more or f"Default: {setting.default_words.replace('`', '')}."
    return click.option(
        setting.option or "",
        setting.name,
        type=KindType(setting.kind),
        metavar=_metavar(setting.kind),
        help=f"{setting.sentence} {words}",
    )


def settings_options(table: Mapping[str, Setting]) -> Callable[[Any], Any]:
    """Return a decorator that gives a command the options of a table of settings."""

    def decorated(command: Any) -> Any:
        for setting in reversed(list(table.values())):
            if setting.option is not None:
                command = option_of(setting)(command)
        return command

    return decorated


def _metavar(kind: Kind) -> str:
    """Return what stands for a value in the help."""
    if isinstance(kind, OneOf):
        return f"[{'|'.join(map(str, kind.choices))}]"
    if isinstance(kind, AnyOf):
        return ",".join(kind.names)
    return {Size: "SIZE", Count: "N", Devices: "auto|N,N"}.get(type(kind), "VALUE")
