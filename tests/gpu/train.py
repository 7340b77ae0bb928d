# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A training that knows nothing of managed memory, and prints its losses as JSON."""

from __future__ import annotations

import json

from torch_loops import losses_of

print(json.dumps(losses_of(12)))
