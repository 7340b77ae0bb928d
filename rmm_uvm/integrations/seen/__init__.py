# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What libraries are about to use, seen at their own calls and announced to a budget's manager.

A file for each place where a library hands device memory to its kernels. docs/use/what-is-seen.md
says what is seen of each library, and what is not: that comes by page faults, and is found
afterwards.
"""
