# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Make the wheels of a release of the wheel that the sources give.

    python ci/release_wheels.py [--conda] WHEEL FOLDER

The wheel of the sources is for one RMM. If it is compiled for all that are supported, it serves
each of them, for CUDA 12 and 13 alike: rmm-uvm-cu12 and rmm-uvm-cu13 have the same files, and ask
for other packages. With --conda it is for the RMM that it is compiled for, and asks for packages
under conda's names, which have no CUDA in them. Prints the paths, one a line.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

from wheel.wheelfile import WheelFile

REPOSITORY = Path(__file__).resolve().parents[1]


def requirements() -> SimpleNamespace:
    """Return rmm_uvm.support.requirements, which needs nothing to be installed."""
    path = REPOSITORY / "rmm_uvm" / "support" / "requirements.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


def range_of(minors: tuple[tuple[int, ...], ...]) -> tuple[str, str]:
    """Return the range of RAPIDS' versions, and that of distributed-ucxx', as pip writes ranges."""
    (year, first), (last_year, last) = minors[0], minors[-1]
    following = (last_year, last + 2) if last < 12 else (last_year + 1, 2)
    return (
        f">={year}.{first},<{following[0]}.{following[1]}",
        f">=0.{ucxx_of(year, first)},<0.{ucxx_of(*following)}",
    )


def ucxx_of(year: int, month: int) -> int:
    """Return the minor of distributed-ucxx that is of a RAPIDS: 50 for 26.06, one more for each."""
    return 50 + (year - 26) * 6 + (month - 6) // 2


def compiled_minors(files: list[str]) -> tuple[tuple[int, ...], ...]:
    """Return RMM's minors that a wheel with these files is compiled for, oldest first."""
    folders = {path.split("/")[2] for path in files if "/_lib/rmm-" in path}
    return tuple(sorted(tuple(map(int, name[len("rmm-") :].split("."))) for name in folders))


def metadata_of(text: str, cuda: int | None, minors: tuple[tuple[int, ...], ...]) -> str:
    """Return a wheel's METADATA as a release for a CUDA major has it, for None as conda's."""
    rapids, ucxx = range_of(minors)
    suffix, cupy = (f"-cu{cuda}", f"-cuda{cuda}x") if cuda else ("", "")
    newest = re.escape(".".join(map(str, requirements().RMM_MINORS[-1])))
    lines = []
    for line in text.splitlines(keepends=True):
        changed = line
        if line.startswith("Name: "):
            changed = f"Name: rmm-uvm{suffix}\n"
        elif line.startswith("Requires-Dist: "):
            changed = re.sub(rf"=={newest}\.\*", rapids, changed)
            changed = re.sub(r"==0\.\d+\.\*", ucxx, changed) if "ucxx" in changed else changed
            changed = re.sub(r"-cu13\b", suffix, changed).replace("-cuda13x", cupy)
        lines.append(changed)
    return "".join(lines)


def release(
    wheel: Path, folder: Path, cuda: int | None, minors: tuple[tuple[int, ...], ...]
) -> Path:
    """Write one wheel of a release, or conda's for None; return its path."""
    name = f"rmm_uvm_cu{cuda}" if cuda else "rmm_uvm"
    to = folder / wheel.name.replace("rmm_uvm", name, 1)
    with WheelFile(wheel) as source, WheelFile(to, "w") as made:
        lacking = set(minors) - set(compiled_minors(source.namelist()))
        if lacking:
            to.unlink()
            told = ", ".join(f"rmm-{major}.{minor:02}" for major, minor in sorted(lacking))
            raise SystemExit(f"{wheel.name} is not compiled for {told}")
        for entry in source.infolist():
            # The list is written when the file is closed. With a folder in it, uninstalling would
            # remove what others put there.
            if entry.is_dir() or entry.filename.endswith(".dist-info/RECORD"):
                continue
            content = source.read(entry)
            if entry.filename.endswith(".dist-info/METADATA"):
                content = metadata_of(content.decode(), cuda, minors).encode()
            entry.filename = re.sub(r"^rmm_uvm(-[^/]+\.dist-info/)", rf"{name}\1", entry.filename)
            made.writestr(entry, content)
    return to


def main() -> None:
    """Make both, or conda's."""
    *options, wheel, folder = sys.argv[1:]
    if options not in ([], ["--conda"]):
        sys.exit(f"release_wheels: unknown option {' '.join(options)}: --conda, or none")
    Path(folder).mkdir(parents=True, exist_ok=True)
    known = requirements()
    kinds = [(cuda, known.RMM_MINORS) for cuda in known.CUDA_MAJORS]
    if options == ["--conda"]:
        with WheelFile(wheel) as source:
            kinds = [(None, compiled_minors(source.namelist()))]
    for cuda, minors in kinds:
        print(release(Path(wheel), Path(folder), cuda, minors))


if __name__ == "__main__":
    main()
