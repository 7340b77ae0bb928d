# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m rmm_uvm_mortgage DATA [ENGINE] [PARTS]``: run once and print the result as JSON.

For development; ``rmm-uvm mortgage`` is the command for users.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline


def main(data: str, engine: str = "pandas", parts: str = "1") -> None:
    """Run the pipeline on the data set `data`."""
    result = run_pipeline(PipelineConfig(Path(data), parts=int(parts)), make_engine(engine))
    sys.stdout.write(json.dumps(result.to_json(), indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
