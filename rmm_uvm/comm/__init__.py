# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask's communication between workers on managed memory, through a small cudaMalloc pool.

Importing it needs neither RMM nor UCX nor a GPU.
"""
