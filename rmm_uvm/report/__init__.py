# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of a recording: text, JSON and one self-contained HTML file.

All are pure functions of a `rmm_uvm.recording.recorded.Recording`. Text and JSON need nothing more
than the package itself; HTML needs Bokeh (``pip install 'rmm-uvm[report]'``).
"""

from __future__ import annotations

from rmm_uvm.report.of_recording import Report

__all__ = ["Report"]
