# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Host memory of the benchmarks: what is freed is kept where that is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import ctypes, resource, sys
sys.path.append(sys.argv[1])
from benchmarks.common import harness
if sys.argv[2] == "kept":
    harness.keep_host_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def fill():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    memory = libc.malloc(64 << 20)
    for offset in range(0, 64 << 20, 4096):
        ctypes.c_char.from_address(memory + offset).value = b"x"
    libc.free(memory)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first, second = fill(), fill()
print(first, second)
"""


def faults(how: str) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(REPOSITORY), how],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.split()
    return int(first), int(second)


def test_memory_that_is_freed_does_not_fault_again_when_kept() -> None:
    first, second = faults("kept")
    assert second < max(first / 10, 10)  # with huge pages there are few from the start


def test_memory_that_is_freed_faults_again_otherwise() -> None:
    first, second = faults("otherwise")
    assert second > first / 2
