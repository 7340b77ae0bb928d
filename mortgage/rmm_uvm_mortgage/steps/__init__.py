# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of the ETL, one module for each group of steps; :mod:`rmm_uvm_mortgage.etl` runs them.

The steps are ordinary functions of an engine and its frames, and keep the function names of the
original notebook. Type variables: see :mod:`rmm_uvm_mortgage.engines.base`.
"""
