# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Workloads: what a program allocated, used and freed, from traces and recordings."""
