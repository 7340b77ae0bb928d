# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is given to Numba's kernels is announced; Numba's dispatcher is played by a class."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest
import rmm

from rmm_uvm.errors import MonitorWarning
from rmm_uvm.integrations.seen.numba import NumbaLaunches, wire_numba_launches

MIB = 1 << 20


class DeviceArray:
    """As Numba's ``DeviceNDArray``."""

    def __init__(self, pool: Any, mib: int) -> None:
        self._held = rmm.DeviceBuffer(size=mib * MIB, mr=pool)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = self._held.size
        return {"data": (self._held.ptr, False), "shape": (size,), "typestr": "|u1"}


class HostArray:
    """It is copied to the device by Numba itself."""

    __array_interface__ = None


@pytest.fixture(params=["of 0.30", "before"])
def dispatcher(request: pytest.FixtureRequest, play: Any) -> Any:
    if request.param == "before":

        class CUDADispatcher:
            def call(
                self, args: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: Any
            ) -> Any:
                return args

            def launch(self, *args: Any, stream: Any = 0) -> Any:
                return self.call(args, 1, 1, stream, 0)

    else:

        class CUDADispatcher:  # type: ignore[no-redef]
            def call(self, args: Any, launch_config: Any) -> Any:
                return args

            def launch(self, *args: Any, stream: Any = 0) -> Any:
                return self.call(args, types.SimpleNamespace(griddim=1, stream=stream))

    play("numba")
    play("numba.cuda")
    return play("numba.cuda.dispatcher", CUDADispatcher=CUDADispatcher).CUDADispatcher


@pytest.fixture
def launches(residency: Any, dispatcher: Any) -> Iterator[NumbaLaunches]:
    launches = NumbaLaunches([residency])
    launches.attach_when_imported()
    yield launches
    launches.detach()


@pytest.fixture
def arrays(pool: Any) -> list[DeviceArray]:
    """More than the budget."""
    return [DeviceArray(pool, 4) for _ in range(6)]


def test_what_a_kernel_is_given_is_announced(
    launches: Any, dispatcher: Any, announced: Any, arrays: Any, residency: Any
) -> None:
    given = (arrays[0], 5, (arrays[1], HostArray()), None)
    assert dispatcher().launch(*given) == given
    assert announced() == 8
    assert residency.residency()["fetched_bytes"] >= 4 * MIB


def test_while_all_is_present_nothing_is_announced(
    launches: Any, dispatcher: Any, announced: Any, pool: Any
) -> None:
    dispatcher().launch(DeviceArray(pool, 4))
    assert announced() == 0


def test_the_launch_waits_on_its_stream(
    launches: Any, dispatcher: Any, arrays: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(launches.announcer, "tell", lambda _uses, stream, **_: asked.append(stream))
    dispatcher().launch(arrays[0])
    dispatcher().launch(arrays[0], stream=types.SimpleNamespace(handle=9))
    assert asked == [0, 9]


def test_a_launch_that_cannot_be_looked_at_goes_on(
    launches: Any, dispatcher: Any, arrays: Any, announced: Any
) -> None:
    class Odd:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("of another make")

    odd = Odd()
    with pytest.warns(MonitorWarning, match=r"Numba uses .* cannot be seen .*rmm_uvm\.touch"):
        assert dispatcher().launch(odd, arrays[0]) == (odd, arrays[0])
    dispatcher().launch(arrays[0])
    assert announced() == 4


def test_it_ends(residency: Any, dispatcher: Any, arrays: Any, announced: Any) -> None:
    theirs = dispatcher.call
    wiring = NumbaLaunches([residency]).wiring("numba_launches")
    assert wiring.active
    assert dispatcher.call is not theirs
    wiring.undo()
    assert dispatcher.call is theirs
    dispatcher().launch(arrays[0])
    assert announced() == 0


def test_without_numba_the_table_says_so(residency: Any) -> None:
    wiring = wire_numba_launches([residency])
    assert (wiring.active, wiring.reason) == (False, "Numba is not installed")
