# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline without a GPU: pandas computes, and memory is used as cuDF would use it.

From the bottom up: `sizes` (bytes), `plan` (events of one operator), `operators` and `reader`
(libcudf), `frame_operators` (cuDF's Python layer), `enactor` (carries out plans), `engine`.
`stages` measures any engine stage by stage.

Does not cover computing speed, or the memory of XGBoost.

See Also
--------
rmm_uvm_mortgage.engines.base : the vocabulary that the engine implements.
"""
