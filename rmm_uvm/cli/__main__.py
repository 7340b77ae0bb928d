# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m rmm_uvm.cli`` is ``rmm-uvm``."""

from rmm_uvm.cli.main import main

main()
