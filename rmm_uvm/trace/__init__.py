# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of a program's memory: what was allocated, freed and touched, with stages and samples."""
