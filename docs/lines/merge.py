# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the sales of each region with its targets."""

import sys

import numpy as np
from libraries import library

cudf = library("cudf")
ROWS = int(sys.argv[1]) << 17


def read_sales():
    return {"region": np.arange(ROWS) % 4096, "price": np.arange(ROWS) % 100}


def read_targets():
    return {"region": np.arange(6 * 4096) % 4096, "target": np.arange(6 * 4096)}


def main():
    sales = cudf.DataFrame(read_sales())
    targets = cudf.DataFrame(read_targets())
    before = sales["price"].sum()
    compared = sales.merge(targets, on="region")
    print(before, compared["price"].sum(), compared["target"].sum())


main()
