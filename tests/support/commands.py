# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Command lines of documents, each checked by whoever would parse it, without its work.

A benchmark's own parser reads its arguments, Dask's commands theirs and those of the preload that
they name; what scripts of ``ci/`` take is read from them.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import distributed.comm
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from rmm_uvm.cli.main import make_group
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import UvmError
from rmm_uvm.support.units import parse_bytes
from rmm_uvm.support.variables import KNOWN

from . import ci_usage
from .projects import CONTENTS, extras_of, requirement_lines
from .snippets import REPOSITORY

Words = list[str]
_SET = re.compile(r"([A-Z]\w*)=(.*)", re.DOTALL)
_GROUP = re.compile(r"(?<= )\[([^\[\]]*)\]")
_SECONDS = 100
# By test_snippet_settings.py, which makes the pool that they name.
CHECKED_ELSEWHERE = {
    "CUDF_POLARS__MEMORY_RESOURCE_CONFIG__QUALNAME",
    "CUDF_POLARS__MEMORY_RESOURCE_CONFIG__OPTIONS",
}


class CommandError(ValueError):
    """A command line that is none."""


def expanded(line: str) -> Iterator[str]:
    """Yield what a line with ``[this|that]`` stands for, with each alternative."""
    if not (group := _GROUP.search(line)):
        yield line.replace(" ...", "").replace("...", "")
        return
    for alternative in group[1].split("|"):
        yield from expanded(line[: group.start()] + alternative + line[group.end() :])


def check_variable(name: str, value: str) -> None:
    """Refuse a variable that nobody reads, and a value that cannot be one."""
    if name.startswith("UCX_"):
        check_ucx(name, value)
    elif name not in KNOWN and name not in CHECKED_ELSEWHERE:
        raise CommandError(f"nobody reads the variable {name}")
    elif name == "RMM_UVM_MANAGED_LIMIT":
        parse_bytes(value, name=name)
    elif name == "RMM_UVM_DRIVER" and value != "cuda":
        choose_driver(0, value)


def check_ucx(name: str, value: str) -> None:
    """Refuse what UCX does not show among its settings as it was set."""
    found = importlib.util.find_spec("libucx")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    done = subprocess.run(
        [folder / "bin" / "ucx_info", "-c"],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder / "lib"), name: value},
        capture_output=True,
        text=True,
        check=True,
    )
    if f"{name}={value}".lower() not in done.stdout.lower().splitlines():
        raise CommandError(f"UCX takes no {name}={value}")


def check_rmm_uvm(words: Words) -> None:
    """Refuse a subcommand or an option of ``rmm-uvm`` that is none."""
    if len(words) < 2 or words[1].startswith("-"):
        return
    group = make_group()
    command = group.get_command(click.Context(group), words[1])
    if command is None:
        raise CommandError(f"rmm-uvm has no {words[1]}")
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
    if words[1] != "run":  # what follows the script is the program's
        unknown = [each for each in options if len(each) > 2 and each not in known]
        if unknown:
            raise CommandError(f"rmm-uvm {words[1]} has no {', '.join(unknown)}")


def check_ci(words: Words) -> None:
    """Refuse a script of ``ci/`` that is none, and words that it does not take."""
    if complaint := ci_usage.complaint(words):
        raise CommandError(complaint)


def check_dask(words: Words) -> None:
    """Refuse what Dask's own commands, and the preload that is named, refuse."""
    commands = {each.name: each for each in importlib.metadata.entry_points(group="dask_cli")}
    if len(words) < 2 or words[1] not in commands:
        raise CommandError(f"dask has no {' '.join(words[1:2])}")
    command, rest = commands[words[1]].load(), words[2:]
    while isinstance(command, click.Group):
        if not rest or rest[0] not in command.commands:
            raise CommandError(f"{command.name} has no {' '.join(rest[:1])}")
        command, rest = command.commands[rest[0]], rest[1:]
    try:
        context = command.make_context(command.name, list(rest))
    except (click.ClickException, ImportError) as error:
        raise CommandError(str(error)) from error
    addresses = [word.partition("://")[0] for word in words if "://" in word]
    for protocol in (*addresses, context.params.get("protocol")):
        if protocol:
            try:
                distributed.comm.registry.get_backend(protocol)
            except ValueError as error:
                raise CommandError(str(error)) from error


@functools.cache
def requirements() -> Mapping[str, set[SpecifierSet]]:
    """Return the versions that pyproject.toml asks for, by distribution."""
    found: dict[str, set[SpecifierSet]] = {}
    for each in map(Requirement, requirement_lines()):
        found.setdefault(each.name, set()).add(each.specifier)
    return found


@functools.cache
def pip_options() -> set[str]:
    """Return the options of ``pip install``."""
    command = [sys.executable, "-m", "pip", "help", "install"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(re.findall(r"(?<= )--?[\w-]+", done.stdout))


def check_pip(words: Words) -> None:
    """Refuse options that pip has not, extras of ours and versions that pyproject has not."""
    if words[1:2] != ["install"]:
        raise CommandError(f"not checked: pip {' '.join(words[1:2])}")
    for word in words[2:]:
        if word.startswith("-"):
            if word not in pip_options():
                raise CommandError(f"pip install has no {word}")
            continue
        asked = Requirement(re.sub(r"^\.", "rmm-uvm", re.sub(r"^\./", "rmm-uvm-", word)))
        known = requirements().get(asked.name, set())
        offered = extras_of(asked.name) if asked.name in CONTENTS else asked.extras
        if unknown := asked.extras - set(offered):
            raise CommandError(f"pyproject.toml has no extra {', '.join(sorted(unknown))}")
        if known and asked.specifier and asked.specifier not in known:
            raise CommandError(f"pyproject.toml has {asked.name}{', '.join(map(str, known))}")


CHECKS: Mapping[str, Callable[[Words], None]] = {
    "rmm-uvm": check_rmm_uvm,
    "dask": check_dask,
    "pip": check_pip,
}


def check_words(words: Words) -> Words:
    """Check the words of a command; return a benchmark's, for which more is needed."""
    while words and (found := _SET.fullmatch(words[0])):
        check_variable(found[1], found[2])
        words = words[1:]
    if not words:
        return []
    if words[0] == "export":
        for word in words[1:]:
            if not (found := _SET.fullmatch(word)):
                raise CommandError(f"sets nothing: {word}")
            check_variable(found[1], found[2])
    elif words[0].startswith("ci/") and words[0].endswith(".sh"):
        check_ci(words)
    elif words[0] == "python" and words[1:2] and words[1].startswith("benchmarks/"):
        folders = {Path(word).parent for word in words[2:] if "/" in word}  # results are in one
        if missing := [str(each) for each in folders if not (REPOSITORY / each).is_dir()]:
            raise CommandError(f"there is no folder {', '.join(missing)}")
        return [str(REPOSITORY / words[1]), *words[2:]]
    elif words[0] in CHECKS:
        CHECKS[words[0]](words)
    else:
        raise CommandError(f"no check knows {words[0]}")
    return []


def parsed(scripts: Sequence[Words]) -> list[str]:
    """Return what the parsers of scripts say against arguments, "" for nothing."""
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("parse_only.py"))],
        input=json.dumps(scripts),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def complaints(lines: Sequence[str]) -> dict[str, str]:
    """Return what is wrong with command lines, by line; nothing of those that are right."""
    found: dict[str, str] = {}
    scripts: list[tuple[str, Words]] = []
    for line in lines:
        try:
            for one in expanded(line):
                if script := check_words(shlex.split(one, comments=True)):
                    scripts.append((line, script))
        except (ValueError, UvmError) as error:  # what refuses, and quotes that do not end
            found[line] = str(error) or type(error).__name__
    for (line, _), said in zip(scripts, parsed([words for _, words in scripts]), strict=True):
        if said:
            found[line] = said
    return found
