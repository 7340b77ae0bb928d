# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, columns and types of the mortgage data set, in file order.

Delimiter, header rule and category *domains* are here as well. A domain is a set of strings
shared by one or several columns: columns of one domain can be joined on their codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["int64", "int32", "float64", "date", "category"]

DELIMITER = "|"
DATE_FORMATS = ("%m/%d/%Y", "%m/%Y")
"""Accepted dates; a date without a day is the first of its month."""
QUARTER_LOANS_LIMIT = 100_000_000
"""Most loans of a synthetic quarter: the ids of two quarters must not meet."""
NULL_FIELDS = ("", "X")
"""Fields read as null; ``X`` is the raw data's unknown delinquency status."""


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column of a file.

    Parameters
    ----------
    name : str
        Column name.
    type : str
        ``int64``, ``int32``, ``float64``, ``date`` or ``category``.
    domain : str or None
        Set of strings a category column draws from; None for all other types.
    """

    name: str
    type: ColumnType
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table: its name and its columns in file order."""

    name: str
    columns: tuple[ColumnSpec, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def category_columns(self) -> dict[str, str]:
        """Category columns and their domains."""
        return {c.name: c.domain for c in self.columns if c.domain is not None}


def _table(name: str, *columns: str) -> TableSchema:
    """Build a schema from ``name type`` or ``name category domain`` lines."""
    return TableSchema(name, tuple(ColumnSpec(*line.split()) for line in columns))  # type: ignore[arg-type]


PERFORMANCE = _table(
    "performance",
    "loan_id int64",
    "monthly_reporting_period date",
    "servicer category servicer",
    "interest_rate float64",
    "current_actual_upb float64",
    "loan_age float64",
    "remaining_months_to_legal_maturity float64",
    "adj_remaining_months_to_maturity float64",
    "maturity_date date",
    "msa float64",
    "current_loan_delinquency_status int32",
    "mod_flag category flag",
    "zero_balance_code category zero_balance_code",
    "zero_balance_effective_date date",
    "last_paid_installment_date date",
    "foreclosed_after date",
    "disposition_date date",
    "foreclosure_costs float64",
    "prop_preservation_and_repair_costs float64",
    "asset_recovery_costs float64",
    "misc_holding_expenses float64",
    "holding_taxes float64",
    "net_sale_proceeds float64",
    "credit_enhancement_proceeds float64",
    "repurchase_make_whole_proceeds float64",
    "other_foreclosure_proceeds float64",
    "non_interest_bearing_upb float64",
    "principal_forgiveness_upb float64",
    "repurchase_make_whole_proceeds_flag category flag",
    "foreclosure_principal_write_off_amount float64",
    "servicing_activity_indicator category flag",
)

ACQUISITION = _table(
    "acquisition",
    "loan_id int64",
    "orig_channel category orig_channel",
    "seller_name category seller",
    "orig_interest_rate float64",
    "orig_upb int64",
    "orig_loan_term int64",
    "orig_date date",
    "first_pay_date date",
    "orig_ltv float64",
    "orig_cltv float64",
    "num_borrowers float64",
    "dti float64",
    "borrower_credit_score float64",
    "first_home_buyer category first_home_buyer",
    "loan_purpose category loan_purpose",
    "property_type category property_type",
    "num_units int64",
    "occupancy_status category occupancy_status",
    "property_state category property_state",
    "zip int64",
    "mortgage_insurance_percent float64",
    "product_type category product_type",
    "coborrow_credit_score float64",
    "mortgage_insurance_type float64",
    "relocation_mortgage_indicator category flag",
)

NAMES = _table("names", "seller_name category seller", "new category seller")

_STATES = (
    *("AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "GU", "HI", "IA"),
    *("ID", "IL", "IN", "KS", "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT"),
    *("NC", "ND", "NE", "NH", "NJ", "NM", "NV", "NY", "OH", "OK", "OR", "PA", "PR", "RI"),
    *("SC", "SD", "TN", "TX", "UT", "VA", "VI", "VT", "WA", "WI", "WV", "WY"),
)

CLOSED_DOMAINS: dict[str, tuple[str, ...]] = {
    "flag": ("N", "Y"),
    "zero_balance_code": ("01", "02", "03", "06", "09", "15", "16"),
    "orig_channel": ("B", "C", "R"),
    "first_home_buyer": ("N", "U", "Y"),
    "loan_purpose": ("C", "P", "R", "U"),
    "property_type": ("CO", "CP", "MH", "PU", "SF"),
    "occupancy_status": ("I", "P", "S", "U"),
    "product_type": ("FRM",),
    "property_state": _STATES,
}
"""Domains whose values are fixed by the data set's glossary; seller and servicer are open."""

OPEN_DOMAINS = ("seller", "servicer")
