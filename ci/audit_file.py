# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Asks a file of advisories about what is installed, and about what each pyproject.toml allows.

Run by ci/audit.sh with the interpreter whose packages are asked about, and in need of no network:
    PYTHON ci/audit_file.py FILE
FILE is JSON as `data/insecure.json` of https://github.com/pyupio/safety-db: by package a list of
specifiers, such as "<3.8.2", each of versions with a known vulnerability; "$meta" has its time.
Exit status 1 if a version is affected, 2 if nothing could be asked.
"""

from __future__ import annotations

import datetime
import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = [ROOT / "pyproject.toml", *ROOT.glob("mortgage/pyproject.toml")]
OURS = {"rmm-uvm", "rmm-uvm-mortgage"}


def nothing(reason: str) -> NoReturn:
    """End with one line that says why nothing could be asked."""
    print(f"audit: nothing could be asked: {reason}")
    sys.exit(2)


try:
    from packaging.requirements import Requirement
    from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version
except ImportError:
    nothing(f"{sys.executable} has no packaging: install it there, it compares versions")


class Asked(NamedTuple):
    """A version that the file is asked about."""

    package: str
    version: str | None
    why: str


class Advisories(NamedTuple):
    """What a file says: specifiers by the canonical name of the package, and its date."""

    specifiers: Mapping[str, frozenset[str]]
    date: str


def read(path: Path) -> Advisories:
    """Read a file of advisories; ends the program if it is none, or names no package."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if text.strip() else {}
    except OSError as error:
        nothing(f"{path}: {error.strerror}; name a copy of safety-db's data/insecure.json")
    except (ValueError, RecursionError) as error:
        nothing(f"{path} is no JSON ({error}); get data/insecure.json of safety-db again")
    packages = {} if not isinstance(content, dict) else dict(content)
    meta = packages.pop("$meta", None)
    found: dict[str, set[str]] = defaultdict(set)
    for name, lines in packages.items():
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            nothing(f"{path}: {name} has no list of specifiers; name safety-db's insecure.json")
        found[canonicalize_name(name)].update(lines)
    if not found:
        nothing(f"{path} names no package; name a copy of safety-db's data/insecure.json")
    return Advisories({name: frozenset(lines) for name, lines in found.items()}, _date(meta))


def _date(meta: Any) -> str:
    try:
        return str(datetime.datetime.fromtimestamp(meta["timestamp"], datetime.UTC).date())
    except (TypeError, KeyError, ValueError, OverflowError, OSError):
        return "an unknown day"


def installed() -> list[Asked]:
    """Return what this interpreter has, but for what is ours: it is on no index."""
    found = {
        Asked(canonicalize_name(each.name or ""), each.version, "installed")
        for each in metadata.distributions()
    }
    return sorted((each for each in found if each.package not in OURS), key=str)


def allowed(projects: Iterable[Path]) -> list[Asked]:
    """Return the lowest version that each requirement allows, of packages, extras and builds."""
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in projects:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        project = content["project"]
        lists = {"build": content["build-system"]["requires"], "package": project["dependencies"]}
        for user, lines in (lists | project["optional-dependencies"]).items():
            for needed in map(Requirement, lines):
                if canonicalize_name(needed.name) not in OURS:
                    users[canonicalize_name(needed.name), str(needed.specifier)].append(user)
    return [
        Asked(name, lowest(SpecifierSet(bounds)), f"{name}{bounds} in {', '.join(who)}")
        for (name, bounds), who in sorted(users.items())
    ]


def lowest(bounds: SpecifierSet) -> str:
    """Return the lowest version that bounds allow, "0" if there is no lower one.

    Only an index knows which version follows one that is left out (`>`, `!=`): then the bound
    itself is asked about, which is never too high.
    """
    lower = [
        Version(each.version.removesuffix(".*"))
        for each in bounds
        if each.operator in (">=", "==", "~=", ">")
    ]
    return str(max(lower, default="0"))


def affected(version: str, line: str) -> bool:
    """Return whether a line of the file, such as ">=2,<2.4", is about a version.

    By the order of versions: specifiers leave pre-releases of 3.8.2 out of "<3.8.2", which may well
    lack what 3.8.2 mended, and 3.8.post1 out of ">3.8". A local build, such as 2.9+cpu, counts as
    what it is built from.
    """
    have = Version(Version(version).public)

    def holds(each: Specifier) -> bool:
        if each.operator in ("<", ">"):
            bound = Version(each.version)
            return have < bound if each.operator == "<" else have > bound
        return each.contains(have, prereleases=True)

    return all(holds(each) for each in SpecifierSet(line))


def ask(advisories: Advisories, questions: Iterable[Asked], what: str) -> int:
    """Print what the file says of versions, and return how many are affected."""
    questions = list(questions)
    known = [each for each in questions if each.package in advisories.specifiers]
    lines, wrong = [], 0
    for package, version, why in known:
        hits = []
        for line in sorted(advisories.specifiers[package]):
            try:
                if affected(version or "", line):
                    hits.append(line)
            except (InvalidSpecifier, InvalidVersion) as error:
                lines.append(f"audit: {package} {version} ({why}): not compared: {error}")
        if hits:
            wrong += 1
            lines.append(f"audit: {package} {version} ({why}): affected: {' or '.join(hits)}")
    print(f"audit: {len(questions)} {what}, {len(known)} of them in the file, {wrong} affected")
    print(*lines, sep="\n", end="\n" if lines else "")
    return wrong


def main(path: str) -> int:
    """Ask about both, and return the exit status."""
    advisories = read(Path(path))
    print(f"audit: advisories of {advisories.date} about {len(advisories.specifiers)} packages")
    wrong = ask(advisories, installed(), "packages are installed")
    wrong += ask(advisories, allowed(PROJECTS), "requirements, each at its lowest version")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
