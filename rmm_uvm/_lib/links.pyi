# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm._lib.driver import UvmDriver

def measure_links(
    driver: UvmDriver, account: ManagedAccount, neighbor: int | None = None
) -> dict[str, int]: ...
