# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What implementations of the queries have in common: tables, how answers sort, what is rounded."""

from __future__ import annotations

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

ORDER: dict[str, tuple[tuple[str, bool], ...]] = {
    "q1": (("l_returnflag", False), ("l_linestatus", False)),
    "q3": (("revenue", True), ("o_orderdate", False)),
    "q4": (("o_orderpriority", False),),
    "q5": (("revenue", True),),
    "q6": (),
    "q9": (("nation", False), ("o_year", True)),
    "q10": (("revenue", True),),
    "q12": (("l_shipmode", False),),
    "q13": (("custdist", True), ("c_count", True)),
    "q14": (),
    "q18": (("o_totalprice", True), ("o_orderdate", False)),
}
"""By query, the columns that it sorts by, and whether descending."""

PDSH_NUMBERS = range(1, 23)

ROUNDED: dict[tuple[str, str], dict[str, int]] = {("pandas-pdsh", "q8"): {"mkt_share": 2}}
"""By library and query, columns of its answer that it rounds, to how many decimals."""
