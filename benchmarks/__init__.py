# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Scripts that measure, in folders by subject, each with its helpers: see README.md.

A script is run by its path, from any folder. It puts the repository last in the search path, so
that it finds helpers as ``benchmarks.FOLDER.MODULE``, and rmm_uvm where that is installed.
"""
