# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings as flags of a worker's command line, and back.

A flag's text is read as in Dask's files, by YAML: ``--maximum-pool-size 64GiB``,
``--initial-pool-size 0.5``, ``--monitor '{interval-seconds: 1}'``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rmm_uvm.dask.settings import ON_WORKERS, checked
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.kinds import OneOf

__all__ = ["FLAGS", "SettingType", "arguments_of", "without_settings"]

FLAGS = {name: f"--{each.key}" for name, each in ON_WORKERS.items() if name != "protocol"}
"""Flag by setting. A worker's ``--protocol`` is Dask's own."""


class SettingType(click.ParamType):  # type: ignore[type-arg]
    """The type of a flag: text that must be a value of one setting.

    Parameters
    ----------
    setting : str
        Its name.
    """

    name = "value"

    def __init__(self, setting: str) -> None:
        self.setting = setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the setting's plain value in a tuple; a usage error if the text is none."""
        try:
            read = _read(value)
            kind = ON_WORKERS[self.setting].kind
            if isinstance(read, bool) and isinstance(kind, OneOf) and read not in kind.choices:
                read = value  # yes and off are words here, and would be called True and False
            found = checked({self.setting: read})[self.setting]
        except ValueError as error:
            raise click.UsageError(" ".join(str(error).split()), ctx) from None
        return (found,)  # null is a value too, and click says None where there is no flag


def _read(text: str) -> Any:
    """Return what a text says, as JSON or YAML; JSON first, since YAML takes 1e-05 for a word."""
    if not text.strip():
        return text  # YAML's null, and most settings have a word for that
    try:
        return json.loads(text)
    except ValueError:
        import yaml  # comes with Dask

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigurationError(f"{text!r} is not valid YAML: {error}") from None


def arguments_of(keywords: Mapping[str, Any]) -> list[str]:
    """Return the command line that says the same as some settings.

    Parameters
    ----------
    keywords : mapping of str to object
        Settings, without ``protocol``.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value cannot be used.

    Examples
    --------
    >>> arguments_of({"maximum_pool_size": "1GiB", "prefetch": "always"})
    ['--maximum-pool-size', '1073741824', '--prefetch', '"always"']
    """
    values = checked(keywords)
    return [word for name in values for word in (FLAGS[name], json.dumps(values[name]))]


def without_settings(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the flags of ours, which all have a value.

    Examples
    --------
    >>> without_settings(["--prefetch", "always", "--create-cuda-context", "--monitor=false"])
    ['--create-cuda-context']
    """
    ours = set(FLAGS.values())
    left, words = [], iter(arguments)
    for word in words:
        if word in ours:
            next(words, None)
        elif word.partition("=")[0] not in ours:
            left.append(word)
    return left
