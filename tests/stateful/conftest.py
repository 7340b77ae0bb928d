# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Random programs take their time: a minute on two processors that others use, too."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.config.getoption("timeout") is None:  # a mark would count more than `--timeout=0`
        item.add_marker(pytest.mark.timeout(400))
