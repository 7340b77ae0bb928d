# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where scripts, results and the document lie."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = REPOSITORY / "benchmarks" / "published"
RESULTS = REPOSITORY / "benchmarks" / "results" / "published"
DOCUMENT = REPOSITORY / "docs" / "measure" / "simulator-accuracy.md"
