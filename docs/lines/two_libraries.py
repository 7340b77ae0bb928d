# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Smooths the prices of each day over some windows, and adds up what was sold."""

import sys

import numpy as np
from libraries import library

cudf, cupy = library("cudf"), library("cupy")
ROWS = int(sys.argv[1]) << 18


def read_sales():
    return {"count": np.ones(ROWS), "price": np.arange(ROWS) % 100}


def smooth(length):
    window = cupy.empty(length * ROWS // 4, dtype="f8")
    window.fill(0)


def main():
    sales = cudf.DataFrame(read_sales())
    total = 0
    for _ in range(8):
        for length in (10, 11, 12):
            smooth(length)
        total += sales["count"].sum() + sales["price"].sum()
    print(total)


main()
