# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training on a simulated device: the programs of PyTorch without a GPU."""
