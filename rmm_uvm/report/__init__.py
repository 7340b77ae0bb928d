# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reports of a recording: text, JSON and one self-contained HTML file."""
