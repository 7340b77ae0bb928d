# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of a recording: text, JSON and one self-contained HTML file.

All are pure functions of a `rmm_uvm.recording.recorded.Recording`. Text and JSON need nothing more
than the package itself; HTML needs Bokeh (``pip install 'rmm-uvm[report]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmm_uvm.report.of_recording import Report

__all__ = ["Report"]


def __getattr__(name: str) -> Any:
    # When it is used: documents are shown where NumPy, which recordings need, may be missing.
    if name == "Report":
        from rmm_uvm.report.of_recording import Report

        return Report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
