# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The command line ``rmm-uvm``: `rmm_uvm.cli.main`, and one module for each subcommand.

A subcommand parses its options, calls the library and prints; it decides nothing itself.
"""

from rmm_uvm.cli.main import main

__all__ = ["main"]
