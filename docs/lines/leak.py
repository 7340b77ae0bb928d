# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Adds up what the orders of each day cost."""

import sys

import numpy as np
from libraries import library

cudf = library("cudf")
ROWS = int(sys.argv[1]) << 17


def read_orders(day):
    return {"item": np.arange(ROWS) % 512, "count": np.arange(ROWS) % (day + 2)}


def read_prices():
    return {"item": np.arange(512), "price": np.arange(512) / 8}


def main():
    prices = cudf.DataFrame(read_prices())
    daily = []
    total = 0
    for day in range(24):
        orders = cudf.DataFrame(read_orders(day))
        daily.append(orders.merge(prices, on="item"))
        total += daily[-1]["price"].sum()
    print(total)


main()
