# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""All published tables: a summary, the result files, and docs/measure/simulator-accuracy.md."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from _accuracy import DOCUMENT, document_with
from _published import HERE, Table, exit_status, result_path, text_of, write_result

NAMES = (
    *("uvm_smart", "gtx1080ti_nvprof", "uvm_discard", "specasync_sparse", "gcn_epochs"),
    *("nvshare_tenants", "gtc_batch_sizes", "gpu_ext_pages", "training_policies"),
    "g10_networks",
)


def table_of(name: str) -> Table:
    """Run one table."""
    table: Table = importlib.import_module(name).table()
    return table


def main() -> int:
    """Run all, print them or their summary; return 1 where anything is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="print every table")
    parser.add_argument("--json", action="store_true", help="write the result files")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args()
    tables = []
    for name in NAMES:
        tables.append(table := table_of(name))
        counts = ", ".join(f"{number} {verdict}" for verdict, number in table.verdicts.items())
        print(text_of(table) + "\n" if options.full else f"{name}: {counts}", flush=True)
        if options.json or options.write:
            write_result(table, result_path(name))
    if options.write:
        path = Path(DOCUMENT)
        path.write_text(document_with(path.read_text(), [table.to_json() for table in tables]))
    return max(exit_status(table) for table in tables)


if __name__ == "__main__":
    assert HERE.is_dir()
    raise SystemExit(main())
