# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Looks up the customers of each day's sales."""

import sys

import numpy as np
from libraries import library

cudf = library("cudf")
ROWS = int(sys.argv[1]) << 18


def read_customers():
    numbers = np.arange(ROWS)
    names = ("customer", "age", "region", "income", "children")
    return {name: numbers % (ROWS >> n) for n, name in enumerate(names)}


def read_sales(day):
    customers = (np.arange(ROWS // 2) * 7 + day) % ROWS
    return {"customer": customers, "price": customers % 100}


def main():
    customers = cudf.DataFrame(read_customers())
    total = 0
    for day in range(8):
        sales = cudf.DataFrame(read_sales(day))
        joined = sales.merge(customers, on="customer")
        total += joined["price"].sum()
    print(total)


main()
