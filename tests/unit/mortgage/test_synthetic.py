# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants of synthetic loans and histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmm_uvm_mortgage.schema import ACQUISITION, CLOSED_DOMAINS, PERFORMANCE
from rmm_uvm_mortgage.synthetic import histories, loans
from rmm_uvm_mortgage.synthetic.text import LineFormatter, header_line, names_lines, sorted_domains


def make_block(seed: int, months: int, loan_count: int) -> tuple[loans.Loans, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    drawn = loans.make_loans(rng, 1000, 2006, 1)
    history = histories.simulate(rng, drawn, months)
    return drawn, histories.to_columns(rng, drawn, history, loan_count)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 200))
def test_histories_of_any_block_are_consistent(seed: int, months: int, loan_count: int) -> None:
    drawn, rows = make_block(seed, months, loan_count)
    loan, month = rows["loan_id"], rows["monthly_reporting_period"]
    status = rows["current_loan_delinquency_status"]
    same_loan = loan[1:] == loan[:-1]
    ended = rows["zero_balance_code"] >= 0
    is_last = np.append(~same_loan, True)

    assert list(np.unique(loan)) == list(drawn.loan_id[:loan_count])
    assert (np.diff(loan) >= 0).all()
    assert (np.diff(month)[same_loan] == 1).all()
    assert (month - rows["loan_age"] == drawn.orig_month[loan - 1000] + 1).all()
    known = same_loan & (status[1:] >= 0) & (status[:-1] >= 0)
    assert (np.diff(status)[known] <= 1).all()
    assert is_last[ended].all()
    assert (rows["current_actual_upb"][ended] == 0).all()
    assert np.nanmin(rows["current_actual_upb"][~ended], initial=1.0) > 0
    assert np.isnan(rows["foreclosure_costs"][~ended]).all()
    assert ((rows["loan_age"] < months) & (rows["loan_age"] >= 0)).all()


def test_histories_of_a_short_block_begin_those_of_a_long_one() -> None:
    _, few = make_block(3, 24, 10)
    _, many = make_block(3, 24, 500)

    for name in PERFORMANCE.column_names:
        np.testing.assert_array_equal(few[name], many[name][: len(few[name])])


def test_histories_are_worse_for_low_credit_scores() -> None:
    rng = np.random.default_rng(0)
    drawn = loans.make_loans(rng, 0, 2000, 1)
    history = histories.simulate(rng, drawn, 36)

    ever_late = (history.status * history.observed).max(axis=0) >= 3

    assert (
        ever_late[drawn.credit_score < 660].mean() > 3 * ever_late[drawn.credit_score > 780].mean()
    )


def test_rare_columns_are_mostly_null() -> None:
    _, rows = make_block(5, 48, 4096)

    for name in ("foreclosure_costs", "net_sale_proceeds", "non_interest_bearing_upb"):
        assert 0 < np.isfinite(rows[name]).mean() < 0.1


def test_names_lines_list_some_sellers_but_not_all() -> None:
    listed = {line.split("|")[0] for line in names_lines().decode().splitlines()}

    assert listed < set(loans.SELLERS)


def test_sorted_domains_hold_every_value_sorted() -> None:
    domains = sorted_domains()

    assert all(list(values) == sorted(set(values)) for values in domains.values())
    assert set(loans.SELLERS) | set(loans.RENAMED_SELLERS.values()) == set(domains["seller"])
    assert domains.keys() == {*CLOSED_DOMAINS, "seller", "servicer"}


@pytest.mark.parametrize("schema", [PERFORMANCE, ACQUISITION], ids=lambda s: s.name)
def test_formatted_lines_have_all_columns_of_the_header(schema: Any) -> None:
    drawn, rows = make_block(1, 6, 20)
    columns = rows if schema is PERFORMANCE else loans.to_columns(drawn)

    lines = LineFormatter().format(schema, columns).decode().splitlines()

    expected = header_line(schema).decode().strip().split("|")
    assert expected == list(schema.column_names)
    assert len(lines) == len(columns["loan_id"])
    assert {line.count("|") for line in lines} == {len(expected) - 1}


def test_formatted_dates_are_month_day_year() -> None:
    drawn, rows = make_block(1, 1, 1)

    line = LineFormatter().format(PERFORMANCE, rows).decode().splitlines()[0]

    year, month = divmod(int(drawn.orig_month[0]) + 1, 12)
    assert line.split("|")[1] == f"{month + 1:02d}/01/{year}"
