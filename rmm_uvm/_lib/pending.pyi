# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

def call_in_main_thread(function: Callable[[], object]) -> bool: ...
