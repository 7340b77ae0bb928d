# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Looking at processes while they run: what ``rmm-uvm top`` shows.

What is seen comes through `seams`; `gather` turns it into the plain values of `view`, and `render`
those into text.
"""
