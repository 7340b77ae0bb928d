# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up more than fits, one part after the other."""

import sys

import numpy as np
from libraries import library

cudf = library("cudf")
ROWS = int(sys.argv[1]) << 17


def read_orders(day):
    return {"item": np.arange(ROWS) % 512, "count": np.arange(ROWS) % (day + 2)}


def main():
    daily = []
    for day in range(24):
        orders = cudf.DataFrame(read_orders(day))
        daily.append(orders["count"].sum())
    print(daily)


main()
