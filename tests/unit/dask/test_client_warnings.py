# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings of workers in the client's process: what is refused. The rest needs a cluster."""

from __future__ import annotations

import pytest

import rmm_uvm.dask
from rmm_uvm.errors import ConfigurationError


@pytest.mark.parametrize("client", [None, "tcp://127.0.0.1:8786", 1])
def test_what_is_no_client_is_refused_in_one_line(client: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^warn_here\(.*\): expected a distributed.Client"
    ):
        rmm_uvm.dask.warn_here(client)
