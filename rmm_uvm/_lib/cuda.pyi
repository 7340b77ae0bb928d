# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.device_info import Availability

class CudaDriver(UvmDriver):
    def __init__(self, device_id: int = 0, *, counters: bool = True) -> None: ...

def libcuda_available() -> Availability: ...
