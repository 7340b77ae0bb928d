# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The development entry ``python -m rmm_uvm_mortgage``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmm_uvm_mortgage.__main__ import main


def test_main_prints_the_result_as_json(
    mortgage_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(str(mortgage_data), "pandas", "2")

    result = json.loads(capsys.readouterr().out)
    assert result["engine"] == "pandas"
    assert len(result["parts"]) == 4
    assert result["quality"]["rows"] > 0
