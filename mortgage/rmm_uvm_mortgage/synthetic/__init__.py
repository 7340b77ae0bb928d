# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Synthetic loans and their histories, in blocks of fixed size.

Every block has a random generator of its own, seeded by the data set's seed, the quarter and the
block's number. So the data depend on nothing else: not on the number of workers, and a larger
data set begins with the loans of a smaller one.

No relation to real loans is claimed: only the shape of the data (columns, types, nulls,
proportions) and the direction of each influence follow the original.
"""
