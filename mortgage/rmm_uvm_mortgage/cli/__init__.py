# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm mortgage``: a subcommand that this package adds to ``rmm-uvm`` by an entry point."""
