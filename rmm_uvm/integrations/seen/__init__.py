# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sees at libraries' own calls what they are about to use, and announces it to a budget's manager.

A file for each place where a library hands device memory to its kernels. docs/use/what-is-seen.md
says what is seen of each library, and what is not: that comes by page faults, and is found
afterwards.
"""
