# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
ALLOCATE: str
DEALLOCATE: str

def go_through_rmm(allocate: int, deallocate: int) -> bool: ...
