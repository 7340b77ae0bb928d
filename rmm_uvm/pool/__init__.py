# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pool: its sizes, how it is built, installed and restored, and hints about its memory."""
