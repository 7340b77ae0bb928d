# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What runs on a Dask worker: its pool, its figures and its limits."""
