# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that `rmm-uvm plan` advises against the defaults, through the whole chain.

Five programs in little are recorded on a simulated device where they fit, planned for cards around
their peak, and run on each: once as `rmm_uvm.reinitialize()` installs the pool, once as advised.
Figures are modelled time of the kernel driver's work, the making of the pool included; they are
the same at every run. Needs no GPU.

    python benchmarks/planner/advice.py [FILE]     default: benchmarks/results/advice.json
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.harness import exit_status, judged, write_json
from benchmarks.planner.advice_programs import FITTING_SECONDS, MACHINE, MIB, PROGRAMS, compared

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


def main() -> int:
    """Run all programs on all cards; return 1 if advice was slower than the defaults."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in PROGRAMS for row in compared(name, Path(folder))]
    for row in rows:
        print(
            f"{row.program:18} {row.device_bytes / MIB:6.0f} MiB card, peak "
            f"{row.peak_bytes / MIB:4.0f} MiB: {row.default_seconds:8.4f} s with the defaults, "
            f"{row.advised_seconds:8.4f} s as advised, {row.ratio:.3f}"
        )
    verdicts = {
        f"advised over default, {name}, worst card": judged(
            max(row.ratio for row in rows if row.program == name), 1.0
        )
        for name in PROGRAMS
    }
    result = {
        "machine": MACHINE,
        "fitting_seconds": FITTING_SECONDS,
        "rows": [dataclasses.asdict(row) | {"ratio": round(row.ratio, 4)} for row in rows],
        "verdicts": verdicts,
    }
    default = Path(__file__).parents[1] / "results" / "advice.json"
    write_json(Path(sys.argv[1]) if len(sys.argv) > 1 else default, "advice", result)
    return exit_status(verdicts)


if __name__ == "__main__":
    sys.exit(main())
