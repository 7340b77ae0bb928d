# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up a table that fits."""

import sys

import numpy as np
from libraries import library

cudf = library("cudf")
ROWS = int(sys.argv[1]) << 18


def read_sales():
    return {"count": np.ones(ROWS), "price": np.arange(ROWS) % 100}


def main():
    sales = cudf.DataFrame(read_sales())
    print([sales["count"].sum() + sales["price"].sum() for _ in range(8)])


main()
