# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Run the programs of ``docs/lines``, and keep their reports, and pictures of their pages.

    python -P docs/make_line_reports.py

On a simulated device of 64 MiB; paths are left out. Needs the extra ``report``, torch and Chromium.
"""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for `tests`

from tests.integration.browser import opened

_FOLDER = Path(__file__).parent / "lines"
_FAULTY = ("loop", "leak", "merge", "training", "two_libraries")
_WITHOUT_FAULT = ("fits", "streams")
_COMMAND = [sys.executable, "-c", "from rmm_uvm.cli.main import main; main()", "run", "--lines"]
_WIDTH, _MOST_HEIGHT = 1000, 1000
# Down to the end of the calls; where these are many, of the table before.
_HEIGHT = """(() => {
    const chart = document.getElementById("flame-title").closest("figure").getBoundingClientRect();
    return Math.ceil(chart.bottom <= MOST ? chart.bottom : chart.top) + scrollY;
})()""".replace("MOST", str(_MOST_HEIGHT))


def report(name: str, folder: Path) -> str:
    """Run a program; return its report as JSON, and leave the page in a folder."""
    path = filter(None, (str(_FOLDER), os.environ.get("PYTHONPATH")))
    figures = folder / f"{name}.json"
    subprocess.run(
        [*_COMMAND, "--device", "simulated:64MiB", "--json", figures, "--html",
         folder / f"{name}.html", f"{name}.py", "4"],
        cwd=_FOLDER, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, check=True,
    )  # fmt: skip
    text = figures.read_text().replace(f"{_FOLDER}/", "")
    return re.sub(r'"/[^"]*/(?:bin/|(?=site-packages/|rmm_uvm/|lib/python))', '"', text)


def picture(page: Path, path: Path) -> None:
    """Take a picture of the first part of a page."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,  # it may still write
        opened(Path(profile)) as shown,
    ):
        shown.open(page, width=_WIDTH, height=_MOST_HEIGHT)
        shown.wait("document.querySelector('.bk-Column, .bk-Figure') && document.fonts.ready")
        shown.evaluate("new Promise(requestAnimationFrame)")
        clip = {"x": 0, "y": 0, "width": _WIDTH, "height": shown.evaluate(_HEIGHT), "scale": 1}
        taken = shown.call("Page.captureScreenshot", format="png", clip=clip)["data"]
    image = Image.open(io.BytesIO(base64.b64decode(taken)))
    few = image.convert("RGB").quantize(64, Image.Quantize.MEDIANCUT, 1, None, Image.Dither.NONE)
    few.save(path, optimize=True)


def main() -> None:
    """Make all of them."""
    for name in (*_FAULTY, *_WITHOUT_FAULT):
        with tempfile.TemporaryDirectory() as folder:
            (_FOLDER / "reports" / f"{name}.json").write_text(report(name, Path(folder)))
            if name in _FAULTY:
                picture(Path(folder) / f"{name}.html", _FOLDER / "reports" / f"{name}.png")


if __name__ == "__main__":
    main()
