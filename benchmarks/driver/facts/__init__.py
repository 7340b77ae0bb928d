# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of the driver facts program; see ``benchmarks/driver/driver_facts.py``."""
