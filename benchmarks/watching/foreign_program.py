# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plain CUDA program, with nothing of ours: one round of faults for each line that it reads.

The GPU faults the memory in, then the CPU faults it back; prints the kernel's seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.watching.faults import stream_over, touch_by_cpu

NBYTES = 1 << 30


def main() -> None:
    memory = cupy.cuda.malloc_managed(NBYTES)
    touch_by_cpu(memory.ptr, NBYTES)
    stream_over(memory.ptr, NBYTES)  # loads the kernel
    touch_by_cpu(memory.ptr, NBYTES)
    print(NBYTES, flush=True)
    for _ in sys.stdin:
        seconds = stream_over(memory.ptr, NBYTES)
        touch_by_cpu(memory.ptr, NBYTES)
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
