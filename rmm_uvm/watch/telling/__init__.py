# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How findings reach users: warnings, callbacks, and what other processes read."""
