# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Monthly histories of loans: delinquency as a Markov chain, then all performance columns.

Each month a loan that is s months late becomes s + 1 late, returns to 0, stays, or ends: repaid
early, or foreclosed once it is long overdue. The chances depend on the loan (`loans.risk`), on how
late it is, on what refinancing would save, and on the calendar (a crisis from 2007 to 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rmm_uvm_mortgage.schema import CLOSED_DOMAINS
from rmm_uvm_mortgage.synthetic.loans import SERVICERS, Loans, risk

OPEN, REPAID, FORECLOSED = 0, 1, 2
CRISIS_MONTHS = (12 * 2007 + 6, 12 * 2010)
MASKED_UPB_MONTHS = 6
"""Young loans whose balance the original data does not show."""

_NO = -1
"""Marks a category or month that is null."""


@dataclass(frozen=True, slots=True)
class Histories:
    """States of all loans of a block; arrays of shape (months, loans).

    Parameters
    ----------
    status : ndarray of int8
        Months late, 0 or more.
    ending : ndarray of int8
        OPEN, or REPAID or FORECLOSED in the loan's last month.
    observed : ndarray of bool
        False after the loan's last month.
    modified : ndarray of bool
        Whether the terms were changed to help the borrower.
    """

    status: npt.NDArray[np.int8]
    ending: npt.NDArray[np.int8]
    observed: npt.NDArray[np.bool_]
    modified: npt.NDArray[np.bool_]


def simulate(rng: np.random.Generator, loans: Loans, months: int) -> Histories:
    """Run the chain for every loan of a block.

    Parameters
    ----------
    rng : numpy.random.Generator
        The block's generator.
    loans : Loans
        The block.
    months : int
        Longest history, in months; >= 1.
    """
    shape = (months, len(loans))
    status, ending = np.zeros(shape, np.int8), np.zeros(shape, np.int8)
    observed, modified = np.zeros(shape, bool), np.zeros(shape, bool)
    logit = risk(loans)
    saving = np.maximum(loans.interest_rate - loans.market_rate, -1.0)
    repay = np.clip(0.005 * np.exp(0.9 * saving + 0.4 * (loans.upb > 200_000)), 0, 0.08)
    roll = 1 / (1 + np.exp(0.3 - 0.25 * logit))
    cure = np.clip(0.5 - 0.12 * logit, 0.03, 0.9) * (1 - roll)

    late = np.zeros(len(loans), np.int64)
    alive = np.ones(len(loans), bool)
    changed = np.zeros(len(loans), bool)
    for t in range(months):
        calendar = loans.orig_month + 1 + t
        crisis = (calendar >= CRISIS_MONTHS[0]) & (calendar < CRISIS_MONTHS[1])
        miss = 1 / (1 + np.exp(5.0 - logit - 0.9 * crisis))
        draw = rng.random(len(loans))
        is_late = late > 0
        deep = np.minimum(1 + 0.08 * late, 1.5)
        up = draw < np.where(is_late, np.minimum(roll * deep, 0.92), miss)
        back = is_late & (draw > 1 - cure / deep)
        repaid = ~is_late & (draw > 1 - repay)
        if t == 0:
            up[:], back[:], repaid[:] = False, False, False
        foreclosed = (late >= 8) & up & (rng.random(len(loans)) < 0.25)
        changed |= back & (late >= 4)
        late = np.where(up, late + 1, np.where(back, 0, late))
        status[t] = np.minimum(late, 99)
        ending[t] = np.where(foreclosed, FORECLOSED, np.where(repaid, REPAID, OPEN))
        observed[t], modified[t] = alive, changed
        alive = alive & ~(foreclosed | repaid)
    return Histories(status, ending, observed, modified)


def to_columns(
    rng: np.random.Generator, loans: Loans, histories: Histories, loan_count: int
) -> dict[str, Any]:
    """Return the performance table's columns for the first loans of a block.

    Parameters
    ----------
    rng : numpy.random.Generator
        The block's generator.
    loans, histories : Loans, Histories
        The block.
    loan_count : int
        Number of loans to return; all are drawn, so that a shorter block is a prefix.

    Returns
    -------
    dict
        Columns in file order, rows by loan and month. Whole numbers, months since year 0 for
        dates, positions in the domain for categories, with -1 for null; floats, NaN for null.
    """
    rows = np.flatnonzero(histories.observed.T)
    loan, age = np.divmod(rows, histories.observed.shape[0])

    def pick(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values.T.ravel()[rows]

    status, ending = pick(histories.status).astype(np.int64), pick(histories.ending)
    month = loans.orig_month[loan] + 1 + age
    ended, lost = ending != OPEN, ending == FORECLOSED
    balance = _balance(loans, loan, np.maximum(age - status, 0))
    remaining = np.maximum(loans.term[loan] - age, 0)
    noise = rng.random((4, len(rows)))

    transfer = (noise[0] < 0.01) & (age > 0)
    servicer = (loans.servicer[loan] + transfer * (1 + age)) % len(SERVICERS)
    unknown_status = noise[1] < 0.0005
    zero_code = np.full(len(rows), _NO, np.int64)
    codes = CLOSED_DOMAINS["zero_balance_code"]
    zero_code[ending == REPAID] = codes.index("01")
    zero_code[ended & (ending == REPAID) & (noise[2] < 0.02)] = codes.index("06")
    zero_code[lost] = np.where(noise[2][lost] < 0.8, codes.index("09"), codes.index("03"))
    repurchased = zero_code == codes.index("06")
    modified = pick(histories.modified)

    def where(mask: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.where(mask, values, np.nan if values.dtype.kind == "f" else _NO)

    def cents(mask: npt.NDArray[np.bool_], fraction: float) -> npt.NDArray[np.float64]:
        """Return a random amount around a fraction of the balance where `mask` is true."""
        amounts = np.full(len(rows), np.nan)
        amounts[mask] = np.round(balance[mask] * fraction * (0.5 + noise[3][mask]), 2)
        return amounts

    columns = {
        "loan_id": loans.loan_id[loan],
        "monthly_reporting_period": month,
        "servicer": where((age == 0) | transfer, servicer),
        "interest_rate": loans.interest_rate[loan] - 1.0 * modified,
        "current_actual_upb": where(
            ended | (age >= MASKED_UPB_MONTHS), np.where(ended, 0.0, balance)
        ),
        "loan_age": age,
        "remaining_months_to_legal_maturity": remaining,
        "adj_remaining_months_to_maturity": where(
            status == 0, np.maximum(remaining - (noise[1] > 0.9), 0)
        ),
        "maturity_date": loans.orig_month[loan] + 2 + loans.term[loan],
        "msa": 10_000 + 20 * loans.zip[loan],
        "current_loan_delinquency_status": where(~unknown_status, status),
        "mod_flag": modified.astype(np.int64),
        "zero_balance_code": zero_code,
        "zero_balance_effective_date": where(ended, month),
        "last_paid_installment_date": where(lost, month - status),
        "foreclosed_after": where(lost, month - 1),
        "disposition_date": where(lost, month),
        "foreclosure_costs": cents(lost, 0.03),
        "prop_preservation_and_repair_costs": cents(lost, 0.02),
        "asset_recovery_costs": cents(lost, 0.01),
        "misc_holding_expenses": cents(lost, 0.005),
        "holding_taxes": cents(lost, 0.015),
        "net_sale_proceeds": cents(lost, 0.7),
        "credit_enhancement_proceeds": cents(lost & (noise[2] < 0.3), 0.15),
        "repurchase_make_whole_proceeds": cents(repurchased, 0.2),
        "other_foreclosure_proceeds": cents(lost & (noise[2] > 0.7), 0.01),
        "non_interest_bearing_upb": cents(modified & (noise[2] < 0.5), 0.05),
        "principal_forgiveness_upb": cents(modified & (noise[2] > 0.95), 0.02),
        "repurchase_make_whole_proceeds_flag": where(ended, repurchased.astype(np.int64)),
        "foreclosure_principal_write_off_amount": cents(lost & (noise[2] > 0.9), 0.1),
        "servicing_activity_indicator": transfer.astype(np.int64),
    }
    kept = int(np.searchsorted(loan, loan_count))
    return {name: values[:kept] for name, values in columns.items()}


def _balance(
    loans: Loans, loan: npt.NDArray[np.int64], payments: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return what is owed after a number of level monthly payments, dollars and cents."""
    growth = 1 + loans.interest_rate / 1200
    final = (growth**loans.term)[loan]
    owed = loans.upb[loan] * (final - growth[loan] ** payments) / (final - 1)
    return np.round(owed, 2)
