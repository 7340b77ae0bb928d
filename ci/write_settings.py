#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Write what is told of settings from their table, `rmm_uvm.support.settings`.

    python ci/write_settings.py

Writes three tables of docs/use/configuration.md, and the defaults and the schema of Dask's
configuration. tests/unit/support/test_settings.py fails until it was run. Needs PyYAML,
which comes with Dask, and no compiled part.
"""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from rmm_uvm.dask.settings import OF_COMM, ON_WORKERS  # noqa: E402
from rmm_uvm.support.kinds import (  # noqa: E402
    AnyOf,
    Count,
    Devices,
    DriverName,
    Foreign,
    Kind,
    Limit,
    OneOf,
    Size,
)
from rmm_uvm.support.settings import SETTINGS, Setting  # noqa: E402
from rmm_uvm.support.units import format_bytes  # noqa: E402

CONFIGURATION = "docs/use/configuration.md"
DEFAULTS = "rmm_uvm/dask/rmm-uvm.yaml"
SCHEMA = "rmm_uvm/dask/rmm-uvm-schema.yaml"
LICENSE = """\
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Written by ci/write_settings.py from rmm_uvm/support/settings.py.
"""
ABOUT_DEFAULTS = """\
# Defaults of the section "rmm-uvm" of Dask's configuration. To change one, put it into a file of
# ~/.config/dask (or the directory that DASK_CONFIG names), or into the environment, such as
# DASK_RMM_UVM__MAXIMUM_POOL_SIZE=64GiB. Sizes are bytes, "64GiB", or a fraction of device memory
# such as 0.9 or 90%. A flag of a worker's command line, or a keyword in a program, comes before
# what stands here.
"""
ABOUT_SCHEMA = """\
# JSON schema of the section "rmm-uvm" of Dask's configuration.
"""


def in_python(value: object) -> str:
    """Return a value as Python has it, as code in a document."""
    text = repr(value).replace("'", '"')
    return f"`{text}`"


def in_yaml(value: object) -> str:
    """Return a value as YAML has it."""
    return str(yaml.safe_dump(plain(value), default_flow_style=True)).removesuffix("...\n").strip()


def as_code(value: object) -> str:
    """Return a value as YAML and the environment have it, as code in a document."""
    return f"`{in_yaml(value)}`"


def plain(value: object) -> object:
    """Return a value without tuples, which YAML does not know."""
    return list(value) if isinstance(value, tuple) else value


def words_of(kind: Kind, spell: Callable[[object], str], *, is_text: bool = False) -> str:
    """Return which values a kind takes; `is_text` only as text of a variable."""
    match kind:
        case Size():
            least = format_bytes(kind.least_bytes).replace(".00", "")
            size = "size" if kind.least_bytes == 1 else f"size from {least}"
            words = [size, *["fraction"] * kind.is_fraction, *[spell("auto")] * kind.automatic]
            words += [spell("none")] * kind.absent
        case OneOf():
            words = [spell(each) for each in kind.choices]
        case AnyOf():
            words = [f"list of {', '.join(map(spell, kind.names))}"]
        case Count():
            words = ["number, from 1"]
        case Devices() if is_text:
            words = [spell("auto"), spell("none"), "ordinals such as 1,2"]
        case Devices():
            words = [spell("auto"), "ordinal", "list"]
        case Limit():
            words = ["size from 2 MiB", *["sizes by ordinal"] * (not is_text)]
        case DriverName():
            words = [
                spell(each)
                for each in ("cuda", "simulated", "simulated:SIZE", "simulated:SIZE@MACHINE")
            ]
        case Foreign():
            words = [kind.words]
            for value in (True, False):
                words = [words[0].replace(str(value), spell(value))]
        case _:
            raise TypeError(f"{kind}: say here what it takes")
    return ", ".join(words)


def types_of(kind: Kind) -> dict[str, Any]:
    """Return the schema of the values of a kind on workers, without null."""
    match kind:
        case Size():
            return {"type": ["integer", *["number"] * kind.is_fraction, "string"]}
        case OneOf():
            return {"enum": list(kind.choices)}
        case AnyOf():
            return {"type": ["array", "string"], "items": {"enum": list(kind.names)}}
        case Count():
            return {"type": ["integer"], "minimum": 1}
        case Devices():
            return {"type": ["array", "integer", "string"], "items": {"type": "integer"}}
        case DriverName():
            return {"type": ["string"]}
        case Foreign():
            return {"type": list(kind.types)}
    raise TypeError(f"{kind}: say here which types it has")


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def python_rows() -> Iterator[str]:
    """Yield the rows of `rmm_uvm.reinitialize`."""
    for each in SETTINGS.values():
        values = ", ".join(filter(None, (words_of(each.kind, in_python), each.objects)))
        default = in_python(each.default)
        if each.default is None:
            variable = f"`{each.variable}`, else " if each.variable else ""
            default = f"{variable}{each.otherwise}"
        yield row(f"`{each.name}`", values, default, f"{each.sentence} {each.more}".strip())


def variable_rows() -> Iterator[str]:
    """Yield the rows of the environment variables."""
    for each in SETTINGS.values():
        if each.variable:
            values = words_of(each.kind, as_code, is_text=True)
            given = "none" if each.default is None else f"none, or {as_code(each.default)}"
            meaning = f"`{each.name}` where a call gives {given}"
            default = each.otherwise if each.default is None else as_code(each.default)
            yield row(f"`{each.variable}`", values, default, meaning)


def dask_settings() -> Iterator[tuple[str, Setting]]:
    """Yield every key of Dask's configuration with its setting."""
    for name, each in ON_WORKERS.items():
        if name == "comm":
            yield from ((f"comm.{one.key}", one) for one in OF_COMM.values())
        else:
            yield each.key, each


def dask_rows() -> Iterator[str]:
    """Yield the rows of Dask's section."""
    for key, each in dask_settings():
        values = [words_of(each.kind, as_code), *(["`null`"] if each.otherwise else [])]
        default = as_code(each.default)
        if each.default is None:
            variable = f"`{each.variable}`, else " if each.variable else ""
            default = f"`null`: {variable}{each.otherwise}"
        yield row(f"`{key}`", ", ".join(values), default)


def with_rows(text: str, heading: str, header: str, rows: Iterable[str]) -> str:
    """Return a document whose table below a heading has these rows."""
    before, found, rest = text.partition(f"\n## {heading}\n")
    between, also, table = f"\n{rest}".partition(f"\n{header}\n")
    if not found or not also or "\n## " in between:
        raise ValueError(f"{CONFIGURATION} has no table {header} below {heading}")
    after = table.partition("\n\n")[2]
    lines = [header, "|" + "---|" * header.count(" | ") + "---|", *rows]
    return "".join((before, found[:-1], between, "\n", "\n".join(lines), "\n\n", after))


def configuration(text: str) -> str:
    """Return docs/use/configuration.md with the tables as they are to be."""
    header = "| keyword | values | default | meaning |"
    text = with_rows(text, "`rmm_uvm.reinitialize(...)`", header, python_rows())
    text = with_rows(text, "Dask", "| key | values | default |", dask_rows())
    ours = {each.variable for each in SETTINGS.values() if each.variable}
    header = "| variable | values | default | meaning |"
    _, _, table = text.partition(f"\n{header}\n")
    rows = table.partition("\n\n")[0].splitlines()[1:]
    others = [line for line in rows if line.split("`")[1] not in ours]
    return with_rows(
        text, "Environment variables", header, [*others[:3], *variable_rows(), *others[3:]]
    )


def comment(each: Setting) -> str:
    """Return the comment of a setting in the file of defaults."""
    words = f"{each.sentence} Values: {words_of(each.kind, in_yaml)}"
    if each.otherwise and each.default is not None:
        words += f"; null: {each.otherwise}"
        words += f"; {in_yaml(each.default)}: {each.variable}, where set" * bool(each.variable)
    elif each.otherwise:
        variable = f"{each.variable}, else " if each.variable else ""
        words += f"; null: {variable}{each.otherwise}"
    return words.replace("`", "") + "."


def defaults() -> str:
    """Return the file of defaults."""
    lines = ["rmm-uvm:"]

    def tell(each: Setting, indent: str) -> None:
        lines.extend(
            textwrap.wrap(
                comment(each), 100, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
            )
        )
        lines.append(f"{indent}{each.key}: {in_yaml(each.default)}")

    for name, each in ON_WORKERS.items():
        if name == "comm":
            lines.append("  comm:")
            for one in OF_COMM.values():
                tell(one, "    ")
        else:
            tell(each, "  ")
    return f"{LICENSE}#\n{ABOUT_DEFAULTS}" + "\n".join(lines) + "\n"


def schema_of(each: Setting) -> dict[str, Any]:
    """Return the schema of one setting."""
    found = types_of(each.kind)
    if each.otherwise:
        allowed = "enum" if "enum" in found else "type"
        found[allowed] = [*found[allowed], None if allowed == "enum" else "null"]
    return {**found, "description": comment(each)}


def section(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping."""
    return {"type": "object", "additionalProperties": False, "properties": dict(properties)}


def schema() -> str:
    """Return the schema."""
    comm = section({one.key: schema_of(one) for one in OF_COMM.values()})
    keys = {
        each.key: comm if name == "comm" else schema_of(each) for name, each in ON_WORKERS.items()
    }
    text = yaml.safe_dump(
        {"properties": {"rmm-uvm": section(keys)}},
        sort_keys=False,
        width=100,
        default_flow_style=None,
    )
    return f"{LICENSE}#\n{ABOUT_SCHEMA}{text}"


def written(root: Path) -> dict[str, str]:
    """Return by path what each file is to be."""
    return {
        CONFIGURATION: configuration((root / CONFIGURATION).read_text()),
        DEFAULTS: defaults(),
        SCHEMA: schema(),
    }


if __name__ == "__main__":
    for name, text in written(ROOT).items():
        (ROOT / name).write_text(text)
