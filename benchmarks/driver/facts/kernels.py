# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Small kernels: one that keeps a stream busy, one that does nothing, one that reads."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from .libcuda import COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, Pointer, Stream
from .session import Session

SOURCE = """
extern "C" __global__ void spin(unsigned long long nanoseconds)
{
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void read(const unsigned long long* words, unsigned long long count,
                                unsigned long long stride, unsigned long long* total)
{
  unsigned long long sum = 0;
  unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
  for (unsigned long long i = first; i < count; i += threads) sum += words[i * stride % count];
  if (sum == 1) *total = sum;
}
"""
READ_BLOCKS, READ_THREADS = 1024, 256


def compile_cubin(architecture: str) -> bytes:
    """Compile the kernels for one architecture such as ``"sm_90"``.

    Machine code and not PTX: the compiler may be newer than the driver, which then refuses PTX.

    Raises
    ------
    RuntimeError
        When the compiler refuses the source.
    ImportError
        Without cuda-bindings.
    """
    from cuda.bindings import nvrtc  # type: ignore[import-untyped, unused-ignore]

    def checked(result: tuple[Any, ...]) -> Any:
        if int(result[0]) != 0:
            message = f"NVRTC: {result[0]!s}"
            raise RuntimeError(message)
        return result[1] if len(result) > 1 else None

    program = checked(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"facts.cu", 0, [], []))
    options = [f"--gpu-architecture={architecture}".encode()]
    checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    cubin: bytes = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin


@dataclass(frozen=True)
class Kernels:
    """The loaded kernels of one session."""

    session: Session
    spin_function: Pointer
    nothing_function: Pointer
    read_function: Pointer

    @classmethod
    def load(cls, session: Session) -> Kernels:
        """Compile and load; both kernels are launched once, since the first launch loads code."""
        major = session.attribute(COMPUTE_CAPABILITY_MAJOR)
        minor = session.attribute(COMPUTE_CAPABILITY_MINOR)
        module, spin, nothing, read = Pointer(), Pointer(), Pointer(), Pointer()
        cubin = compile_cubin(f"sm_{major}{minor}")
        session.cuda("cuModuleLoadData", ctypes.byref(module), cubin)
        session.cuda("cuModuleGetFunction", ctypes.byref(spin), module, b"spin")
        session.cuda("cuModuleGetFunction", ctypes.byref(nothing), module, b"nothing")
        session.cuda("cuModuleGetFunction", ctypes.byref(read), module, b"read")
        kernels = cls(session, spin, nothing, read)
        kernels.spin(1000, session.stream)
        kernels.nothing(session.other_stream)
        session.synchronize()
        session.cuda("cuStreamSynchronize", session.other_stream)
        return kernels

    def spin(self, duration_ns: int, stream: Stream) -> None:
        """Keep `stream` busy for `duration_ns`."""
        value = ctypes.c_uint64(duration_ns)
        self._launch(self.spin_function, stream, (Pointer * 1)(ctypes.addressof(value)))

    def nothing(self, stream: Stream) -> None:
        """Launch the empty kernel."""
        self._launch(self.nothing_function, stream, None)

    def read(self, pointer: int, word_count: int, stride: int, stream: Stream) -> None:
        """Read words of 8 bytes once each; `stride` 1 in order, else one coprime to the count."""
        values = [ctypes.c_uint64(each) for each in (pointer, word_count, stride, pointer)]
        arguments = (Pointer * len(values))(*map(ctypes.addressof, values))
        grid = (READ_BLOCKS, 1, 1, READ_THREADS, 1, 1)
        self.session.cuda("cuLaunchKernel", self.read_function, *grid, 0, stream, arguments, None)

    def _launch(self, function: Pointer, stream: Stream, arguments: Any) -> None:
        one_thread = (1, 1, 1, 1, 1, 1)
        self.session.cuda("cuLaunchKernel", function, *one_thread, 0, stream, arguments, None)
