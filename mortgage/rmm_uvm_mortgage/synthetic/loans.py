# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Loans as they are known when acquired: the acquisition table of one block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rmm_uvm_mortgage.schema import CLOSED_DOMAINS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BLOCK_LOANS = 4096

_TREES = "ALDER ASPEN BEECH BIRCH CEDAR CYPRESS ELM FIR HAZEL JUNIPER LARCH LINDEN MAPLE OAK PINE"
RENAMED_SELLERS = {f"{tree} BANK, N.A.": f"{tree.title()}" for tree in _TREES.split()}
"""Content of ``names.csv``: old and new name of each seller."""
UNLISTED_SELLERS = ("OTHER", "ROWAN MORTGAGE CO", "WILLOW HOME LENDING, LLC")
"""Sellers that ``names.csv`` does not mention."""
SELLERS = (*RENAMED_SELLERS, *UNLISTED_SELLERS)
SERVICERS = tuple(f"{tree} LOAN SERVICING" for tree in _TREES.split())

STATES = CLOSED_DOMAINS["property_state"]


@dataclass(frozen=True, slots=True)
class Loans:
    """Loans of one block; arrays of one entry for each loan, NaN where unknown.

    Months are counted from January of year 0. Categories are positions in the named tuples.
    """

    loan_id: Integers
    channel: Integers
    seller: Integers
    servicer: Integers
    interest_rate: Floats
    upb: Integers
    term: Integers
    orig_month: Integers
    ltv: Floats
    cltv: Floats
    borrowers: Floats
    dti: Floats
    credit_score: Floats
    co_credit_score: Floats
    first_home_buyer: Integers
    purpose: Integers
    property_type: Integers
    units: Integers
    occupancy: Integers
    state: Integers
    zip: Integers
    insurance_percent: Floats
    insurance_type: Floats
    relocation: Integers
    market_rate: float

    def __len__(self) -> int:
        """Return the number of loans."""
        return len(self.loan_id)


def market_rate(year: int) -> float:
    """Return the usual interest rate of a year, percent: falling, with waves."""
    return float(max(3.2, 7.8 - 0.25 * (year - 2000) + 0.5 * np.sin(year)))


def _unknown(
    rng: np.random.Generator, values: npt.NDArray[np.floating[Any]], fraction: float
) -> Floats:
    return np.where(rng.random(len(values)) < fraction, np.nan, values)


def make_loans(rng: np.random.Generator, first_id: int, year: int, quarter: int) -> Loans:
    """Draw the loans of one block.

    Parameters
    ----------
    rng : numpy.random.Generator
        The block's generator.
    first_id : int
        Loan id of the first loan; the others follow.
    year, quarter : int
        Quarter of acquisition; 1 <= quarter <= 4.
    """
    n = BLOCK_LOANS

    def choice(weights: list[float]) -> Integers:
        p = np.asarray(weights) / np.sum(weights)
        return rng.choice(len(p), n, p=p).astype(np.int64)

    score = np.clip(np.rint(rng.normal(730, 55, n)), 480, 850)
    ltv = np.rint(np.clip(rng.normal(74, 16, n), 10, 97))
    second_lien = rng.random(n) < 0.1
    cltv = np.minimum(ltv + second_lien * rng.integers(1, 20, n), 110.0)
    dti = np.rint(np.clip(rng.normal(35, 11, n), 1, 64))
    borrowers = 1.0 + (rng.random(n) < 0.45)
    partner = np.clip(score + np.rint(rng.normal(0, 30, n)), 480, 850)
    term = np.array([360, 180, 240])[choice([0.75, 0.18, 0.07])]
    usual = market_rate(year)
    spread = (720 - score) / 250 + (ltv - 75) / 120 + rng.normal(0, 0.3, n) - (term < 360) * 0.5
    insured = ltv > 80
    state = choice([1.0 + 6.0 * (name in {"CA", "FL", "TX", "NY", "IL", "GA"}) for name in STATES])
    return Loans(
        loan_id=np.arange(first_id, first_id + n, dtype=np.int64),
        channel=choice([0.3, 0.3, 0.4]),
        seller=choice([1.0] * len(SELLERS)),
        servicer=rng.integers(0, len(SERVICERS), n),
        interest_rate=np.maximum(np.rint((usual + spread) * 8) / 8, 1.5),
        upb=np.maximum(np.rint(rng.lognormal(5.1, 0.5, n)), 10).astype(np.int64) * 1000,
        term=term,
        orig_month=12 * year + 3 * (quarter - 1) + rng.integers(0, 3, n),
        ltv=ltv,
        cltv=_unknown(rng, cltv, 0.01),
        borrowers=_unknown(rng, borrowers, 0.001),
        dti=_unknown(rng, dti, 0.03),
        credit_score=_unknown(rng, score, 0.005),
        co_credit_score=np.where(borrowers > 1, _unknown(rng, partner, 0.05), np.nan),
        first_home_buyer=choice([0.85, 0.01, 0.14]),
        purpose=choice([0.3, 0.4, 0.29, 0.01]),
        property_type=choice([0.1, 0.01, 0.01, 0.2, 0.68]),
        units=1 + choice([0.96, 0.025, 0.008, 0.007]),
        occupancy=choice([0.09, 0.86, 0.04, 0.01]),
        state=state,
        zip=100 + 15 * state + rng.integers(0, 15, n),
        insurance_percent=np.where(insured, 5.0 * rng.integers(2, 8, n), np.nan),
        insurance_type=np.where(insured, 1.0 + (rng.random(n) < 0.1), np.nan),
        relocation=choice([0.99, 0.01]),
        market_rate=usual,
    )


def risk(loans: Loans) -> Floats:
    """Return each loan's risk as log-odds around 0: what makes a borrower miss payments."""
    score = np.nan_to_num(loans.credit_score, nan=680.0)
    state_effect = np.sin(np.arange(len(STATES)) * 2.4)[loans.state]
    return np.asarray(
        (715 - score) / 45
        + (loans.ltv - 75) / 25
        + (np.nan_to_num(loans.dti, nan=45.0) - 35) / 22
        + (loans.interest_rate - loans.market_rate) * 0.4
        + 0.35 * state_effect
        + 0.3 * (loans.occupancy == CLOSED_DOMAINS["occupancy_status"].index("I"))
        - 0.2 * (loans.borrowers > 1),
        np.float64,
    )


def to_columns(loans: Loans) -> dict[str, Any]:
    """Return the acquisition table's columns, by name, as lists or arrays that Arrow takes."""
    return {
        "loan_id": loans.loan_id,
        "orig_channel": loans.channel,
        "seller_name": loans.seller,
        "orig_interest_rate": loans.interest_rate,
        "orig_upb": loans.upb,
        "orig_loan_term": loans.term,
        "orig_date": loans.orig_month,
        "first_pay_date": loans.orig_month + 2,
        "orig_ltv": loans.ltv,
        "orig_cltv": loans.cltv,
        "num_borrowers": loans.borrowers,
        "dti": loans.dti,
        "borrower_credit_score": loans.credit_score,
        "first_home_buyer": loans.first_home_buyer,
        "loan_purpose": loans.purpose,
        "property_type": loans.property_type,
        "num_units": loans.units,
        "occupancy_status": loans.occupancy,
        "property_state": loans.state,
        "zip": loans.zip,
        "mortgage_insurance_percent": loans.insurance_percent,
        "product_type": np.zeros(len(loans), np.int64),
        "coborrow_credit_score": loans.co_credit_score,
        "mortgage_insurance_type": loans.insurance_type,
        "relocation_mortgage_indicator": loans.relocation,
    }
