# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m rmm_uvm`` is ``rmm-uvm``."""

from rmm_uvm.cli import main

if __name__ == "__main__":
    main()
