# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is announced of a call is what its kernels touch: no byte is missing, and few are too many.

Libraries are played by functions that touch a simulated device as the true ones touch a GPU. The
same programs run without a budget on a card of the budget's size: what is announced here faults
there. Each twin leaves one announcement out, and has to be caught.
"""

from __future__ import annotations

import contextlib
import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.integrations.seen import columns as seen_columns
from rmm_uvm.integrations.seen.arrays import ArrayUses
from rmm_uvm.integrations.seen.buffers import wire_buffers
from rmm_uvm.integrations.seen.cupy import CupyArrays, CupyKernels
from rmm_uvm.integrations.seen.libcudf import LibcudfCalls
from rmm_uvm.integrations.seen.numba import NumbaLaunches
from rmm_uvm.integrations.seen.seam import Seam
from rmm_uvm.integrations.seen.xgboost import XgboostData
from rmm_uvm.residency import Budget

from ....support import touching_libcudf as libcudf
from ....support.touched_memory import TouchedMemory
from .test_cupy import KINDS, METHODS, Memory, Pointer, _ndarray_base, play_cupy

MIB = 1 << 20
BUDGET_BYTES = 32 * MIB
ROWS = 1 << 18  # of 2 MiB, in a column of 64-bit numbers
ROUNDS = 3
KERNELS = {"ufunc", "ElementwiseKernel", "ReductionKernel", "_SimpleReductionKernel", "Function"}


def budgeted() -> TouchedMemory:
    """Return memory on a device with room, under a budget; what came first leaves first."""
    pool = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device("1GiB"),
        maximum_pool_size="512MiB",
        device_budget=Budget(BUDGET_BYTES, policy="fifo", discard_dead=False, background=False),
    )
    return with_something_away(TouchedMemory(pool))


def oversubscribed() -> TouchedMemory:
    """Return the same memory on a device of the budget's size, left to the kernel driver."""
    pool = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(BUDGET_BYTES),
        maximum_pool_size="512MiB",
        device_budget=None,
        prefetch="never",
    )
    return with_something_away(TouchedMemory(pool))


def with_something_away(memory: TouchedMemory) -> TouchedMemory:
    """Have more than the device holds; while everything is there nothing need be announced."""
    memory.keep(*(memory.made(BUDGET_BYTES // 2) for _ in range(3)))
    return memory


@pytest.fixture
def memory() -> Iterator[TouchedMemory]:
    memory = budgeted()
    with memory.listening():
        yield memory


@pytest.fixture
def plc(monkeypatch: pytest.MonkeyPatch) -> Any:
    return libcudf.play(monkeypatch)


@contextlib.contextmanager
def attached(*seams: Seam) -> Iterator[None]:
    """Let seams announce in this block, and no longer, whatever fails in it."""
    with contextlib.ExitStack() as ends:
        for each in seams:
            ends.callback(each.detach)
            each.attach_when_imported()
        yield


@pytest.fixture
def calls(memory: TouchedMemory, plc: Any) -> Iterator[LibcudfCalls]:
    calls = LibcudfCalls([memory.mr.managed_mr.residency])
    with attached(calls):
        yield calls


class Frames:
    """Data of some budgets: numbers, strings, lists and structures, with masks and without."""

    def __init__(self, memory: TouchedMemory) -> None:
        numbers = [libcudf.fixed(memory, ROWS, nullable=bool(one % 2)) for one in range(8)]
        self.keys, self.values = libcudf.Table(numbers[:2]), libcudf.Table(numbers[2:6])
        self.long = libcudf.fixed(memory, 4 * ROWS, nullable=True)
        self.map, self.flags = (libcudf.fixed(memory, ROWS) for _ in range(2))
        self.names = libcudf.strings(memory, ROWS, 12, nullable=True)
        self.lists = libcudf.lists(memory, ROWS // 4, 5, nullable=True)
        self.pairs = libcudf.structure(memory, *numbers[6:], nullable=True)
        self.texts = libcudf.Table([self.names, self.lists, self.pairs])


def use(plc: Any, frames: Frames) -> None:
    """Go once through what programs do with frames."""
    copying = plc.copying
    plc.join.inner_join(frames.keys, libcudf.Table([frames.map, frames.flags]))
    copying.gather(frames.values, frames.map)
    copying.gather(frames.texts, frames.map, stream=None)
    for part in copying.slice(frames.long, [ROWS + 3, 2 * ROWS, 3 * ROWS + 5, 3 * ROWS + 1005]):
        plc.binaryop.binary_operation(part, part, "add", None)
        part.copy()
    kept = copying.slice(frames.pairs, [ROWS // 3, ROWS // 2])
    plc.concatenate.concatenate([libcudf.Table(kept), frames.texts])
    grouped = plc.groupby.GroupBy(frames.keys)
    grouped.aggregate([plc.groupby.GroupByRequest(one, ["sum"]) for one in frames.values.made_of])
    plc.sorting.sort_by_key(frames.values, frames.keys)
    plc.stream_compaction.apply_boolean_mask(frames.texts, frames.flags)
    plc.strings.to_upper(frames.names)
    plc.reduce.reduce(frames.long, "sum", None)
    plc.null_mask.null_count(frames.names.null_mask(), 0, ROWS)
    frames.lists.to_arrow()


def faults(memory: TouchedMemory) -> int:
    return int(memory.device.statistics()["gpu_faults"])


@pytest.mark.usefixtures("calls")
def test_calls_of_libcudf_announce_what_they_touch(plc: Any, memory: TouchedMemory) -> None:
    frames = Frames(memory)
    for _ in range(ROUNDS):
        use(plc, frames)
    assert memory.problems() == []
    assert len(memory.kernels) == ROUNDS * 15
    assert sum(one.touched_bytes for one in memory.kernels) > ROUNDS * 3 * BUDGET_BYTES


@pytest.mark.usefixtures("calls")
def test_nothing_faults_in_where_everything_is_announced(plc: Any, memory: TouchedMemory) -> None:
    frames = Frames(memory)
    before = faults(memory)
    for _ in range(ROUNDS):
        use(plc, frames)
    told = memory.mr.managed_mr.residency.residency()
    assert (told["found_bytes"], told["faulted_bytes"], told["too_large"]) == (0, 0, 0)
    assert faults(memory) == before
    assert told["fetched_bytes"] > ROUNDS * BUDGET_BYTES


def run(memory: TouchedMemory, *, seen: bool) -> None:
    """Go some rounds through what programs do."""
    with memory.listening(), pytest.MonkeyPatch.context() as patched:
        plc = libcudf.play(patched)
        calls = LibcudfCalls([memory.mr.managed_mr.residency])
        with attached(*([calls] if seen else [])):
            frames = Frames(memory)
            for _ in range(ROUNDS):
                use(plc, frames)


def test_what_faults_in_without_a_budget_is_what_a_budget_fetches() -> None:
    ours, theirs = budgeted(), oversubscribed()
    run(ours, seen=True)
    run(theirs, seen=False)
    assert (ours.faulted_bytes, theirs.fetched_bytes) == (0, 0)
    assert ours.fetched_bytes == pytest.approx(theirs.faulted_bytes, rel=0.1)


UNDONE = {
    "binaryop.binary_operation": "binary_operation",
    "concatenate.concatenate": "concatenate",
    "copying.gather": "gather",
    "groupby.GroupBy.__init__": "GroupBy.aggregate",
    "groupby.GroupBy.aggregate": "GroupBy.aggregate",
    "groupby.GroupByRequest.__init__": "GroupBy.aggregate",
    "join.inner_join": "inner_join",
    "null_mask.null_count": "null_count",
    "reduce.reduce": "reduce",
    "sorting.sort_by_key": "sort_by_key",
    "stream_compaction.apply_boolean_mask": "apply_boolean_mask",
    "strings.to_upper": "to_upper",
    "column.Column.copy": "Column.copy",
    "column.Column.to_arrow": "Column.to_arrow",
}


def test_every_call_that_is_seen_has_a_twin(calls: LibcudfCalls) -> None:
    assert set(calls.seen) == {name for name in UNDONE if not name.endswith("__init__")}


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(("path", "kernel"), UNDONE.items())
def test_call_that_is_not_replaced_is_caught(
    path: str, kernel: str, plc: Any, memory: TouchedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, plc)
    monkeypatch.setattr(owner, name, getattr(owner, name).__wrapped__)
    use(plc, Frames(memory))
    assert caught(memory) == {kernel}


def caught(memory: TouchedMemory) -> set[str]:
    """Return the kernels that touched what was not announced."""
    problems = memory.problems(most=math.inf)
    assert all("bytes were not announced" in each for each in problems)
    return {each.partition(":")[0] for each in problems}


PARTS: dict[str, Callable[[Frames], Any]] = {
    "numbers": lambda frames: frames.values.made_of[1].data_buffer,
    "mask of numbers": lambda frames: frames.long.mask_buffer,
    "characters": lambda frames: frames.names.data_buffer,
    "offsets of strings": lambda frames: frames.names.parts[0].data_buffer,
    "mask of strings": lambda frames: frames.names.mask_buffer,
    "offsets of lists": lambda frames: frames.lists.parts[0].data_buffer,
    "elements of lists": lambda frames: frames.lists.parts[1].data_buffer,
    "mask of lists": lambda frames: frames.lists.mask_buffer,
    "part of a structure": lambda frames: frames.pairs.parts[1].data_buffer,
    "mask of a part of a structure": lambda frames: frames.pairs.parts[1].mask_buffer,
    "mask of a structure": lambda frames: frames.pairs.mask_buffer,
}


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("part", PARTS)
def test_part_of_a_column_that_is_not_announced_is_caught(
    part: str, plc: Any, memory: TouchedMemory
) -> None:
    frames = Frames(memory)
    buffer = PARTS[part](frames)
    announce = seen_columns.ColumnUses._buffer

    def without_part(uses: Any, given: Any, *more: Any) -> None:
        if given is not buffer:
            announce(uses, given, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seen_columns.ColumnUses, "_buffer", without_part)
        use(plc, frames)
    assert caught(memory)


@pytest.mark.parametrize("kind", [libcudf.TypeId.STRING, libcudf.TypeId.LIST])
def test_last_offset_that_is_not_announced_is_caught(
    kind: libcudf.TypeId, plc: Any, memory: TouchedMemory, calls: LibcudfCalls
) -> None:
    calls._uses._begins_with_rows[kind] = 0
    use(plc, Frames(memory))
    assert caught(memory) >= {"gather", "apply_boolean_mask"}


@pytest.mark.usefixtures("calls")
def test_slice_that_is_announced_from_its_first_row_is_caught(
    plc: Any, memory: TouchedMemory
) -> None:
    rows_of = seen_columns.ColumnUses._rows

    def from_the_first(this: Any, column: Any, _first: int, count: int, found: Any) -> None:
        rows_of(this, column, 0, count, found)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seen_columns.ColumnUses, "_rows", from_the_first)
        use(plc, Frames(memory))
    assert caught(memory) == {"binary_operation", "Column.copy"}


def test_slice_of_which_the_whole_is_announced_is_caught(
    plc: Any, memory: TouchedMemory, calls: LibcudfCalls
) -> None:
    calls._uses._is_fixed_width = lambda _kind: False
    use(plc, Frames(memory))
    assert caught(memory) == set()
    assert {each.partition(":")[0] for each in memory.problems()} >= {"binary_operation"}


@pytest.mark.usefixtures("calls")
def test_of_a_slice_of_strings_all_characters_are_announced(
    plc: Any, memory: TouchedMemory
) -> None:
    # docs/use/what-is-seen.md: nobody knows where a row begins without reading it.
    names = libcudf.strings(memory, ROWS, 12)
    plc.strings.to_upper(libcudf.sliced(names, ROWS // 2, ROWS // 4))
    assert caught(memory) == set()
    (kernel,) = memory.kernels
    assert kernel.announced_bytes - kernel.touched_bytes == ROWS * 12 * 3 // 4


@pytest.mark.usefixtures("calls")
def test_memory_of_a_scalar_is_not_announced(plc: Any, memory: TouchedMemory) -> None:
    # docs/use/what-is-seen.md: nobody can ask a scalar where it is.
    numbers = libcudf.fixed(memory, ROWS)
    plc.binaryop.binary_operation(numbers, libcudf.Scalar(memory), "add", None)
    assert memory.problems() == [
        f"binary_operation: 16 of {8 * ROWS + 16} bytes were not announced"
    ]


def test_what_is_not_announced_faults_in_beside_the_budget(
    plc: Any, memory: TouchedMemory, calls: LibcudfCalls
) -> None:
    calls.detach()
    use(plc, Frames(memory))
    told = memory.mr.managed_mr.residency.residency()
    assert memory.faulted_bytes > 0
    assert told["faulted_bytes"] > 0


class Array:
    """An array of Numba, or of another library, that is known by its interface."""

    def __init__(self, memory: TouchedMemory, nbytes: int = 4 * MIB) -> None:
        self._held = memory.made(nbytes)
        self.region = self._held.ptr, nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address, nbytes = self.region
        return {"data": (address, False), "shape": (nbytes,), "typestr": "|u1"}


def cupy_array(cupy: Any, memory: TouchedMemory, first: int = 0, rows: int = ROWS) -> Any:
    """Make rows of an array of CuPy."""
    pointer = Pointer(Memory(memory.made(8 * ROWS)), 8 * first)
    return cupy.ndarray(pointer, (rows,))


def region_of(thing: Any) -> tuple[int, int] | None:
    """Return address and bytes, without asking for what is seen."""
    if isinstance(thing, Array):
        return thing.region
    pointer = getattr(thing, "_pointer", None)
    return None if pointer is None else (pointer.ptr, thing.nbytes)


def touching(memory: TouchedMemory, name: str) -> Callable[..., None]:
    """Return a call whose kernel writes all arrays that it is given."""

    def call(*args: Any, **kwargs: Any) -> None:
        with memory.kernel(name):
            for thing in (*args, *kwargs.values()):
                for each in thing if isinstance(thing, tuple) else (thing,):
                    if (region := region_of(each)) is not None:
                        memory.write(*region)

    return call


class Libraries:
    """CuPy, Numba and XGBoost, whose kernels touch memory."""

    def __init__(self, memory: TouchedMemory, play: Any, patched: pytest.MonkeyPatch) -> None:
        self.memory = memory
        self.cupy = play_cupy(play)
        for name, kind in KINDS.items():
            patched.setattr(kind, "__call__", touching(memory, name))
        for name in METHODS:
            patched.setattr(_ndarray_base, name, touching(memory, name))
        dispatcher = type("CUDADispatcher", (), {"call": None})
        patched.setattr(dispatcher, "call", touching(memory, "Numba"))
        play("numba")
        play("numba.cuda")
        self.dispatcher = play("numba.cuda.dispatcher", CUDADispatcher=dispatcher).CUDADispatcher
        interfaces = {"array_interface": lambda _self: b"interfaces"}
        transformed = type("CudfTransformed", (), interfaces)
        self.xgboost = play("xgboost.data", CudfTransformed=transformed)

    def use(self) -> None:
        """Go once through kernels of all of them."""
        cupy, memory = self.cupy, self.memory
        arrays = [cupy_array(cupy, memory) for _ in range(6)]
        part = cupy_array(cupy, memory, ROWS // 4, ROWS // 2)
        for name, kind in KINDS.items():
            if name in KERNELS:
                kind()(arrays[0], part, 5, out=arrays[1])
        kind = KINDS["Function"]
        kind()((1,), (32,), (arrays[2], part))
        for name in METHODS:
            getattr(arrays[3], name)(arrays[4])
        others = [Array(memory) for _ in range(6)]
        launch = types.SimpleNamespace(stream=0)
        self.dispatcher().call((others[0], others[1], arrays[5], 7), launch)
        frame = self.xgboost.CudfTransformed()
        frame.columns, frame.temporary_buffers = others[2:5], [(others[5],)]
        assert frame.array_interface() == b"interfaces"
        touching(memory, "XGBoost")(*frame.columns, *frame.temporary_buffers)
        assert arrays[0].data.ptr
        touching(memory, "cuML")(arrays[0])
        assert part.__cuda_array_interface__
        touching(memory, "cuGraph")(part)


SEAMS = (CupyArrays, CupyKernels, NumbaLaunches, XgboostData)


@pytest.fixture
def libraries(memory: TouchedMemory, play: Any) -> Iterator[Libraries]:
    with pytest.MonkeyPatch.context() as patched:
        yield Libraries(memory, play, patched)


def use_seen(libraries: Libraries, *seams: Any) -> None:
    """Go through kernels while some seams announce what they use."""
    with attached(*(seam([libraries.memory.mr.managed_mr.residency]) for seam in seams)):
        libraries.use()


def test_arrays_of_all_libraries_are_announced_as_they_are_touched(libraries: Libraries) -> None:
    memory = libraries.memory
    use_seen(libraries, *SEAMS)
    assert memory.problems() == []
    assert len(memory.kernels) == len(KERNELS) + 1 + len(METHODS) + 4
    told = memory.mr.managed_mr.residency.residency()
    assert (told["found_bytes"], told["faulted_bytes"], memory.faulted_bytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("seam", "kernels"),
    [
        (CupyArrays, {*METHODS, "cuML", "cuGraph"}),
        (CupyKernels, KERNELS),
        (NumbaLaunches, {"Numba"}),
        (XgboostData, {"XGBoost"}),
    ],
)
def test_seam_that_is_left_out_is_caught(
    seam: Any, kernels: set[str], libraries: Libraries
) -> None:
    use_seen(libraries, *(each for each in SEAMS if each is not seam))
    assert caught(libraries.memory) == kernels


def test_argument_that_is_left_out_is_caught(libraries: Libraries) -> None:
    of_things = ArrayUses.of_things
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ArrayUses, "of_things", lambda uses, things: of_things(uses, things[:-1]))
        use_seen(libraries, *SEAMS)
    assert caught(libraries.memory) >= {*KERNELS, *METHODS, "cuML"}


def test_buffer_of_rmm_that_is_handed_out_is_announced(memory: TouchedMemory) -> None:
    buffer = memory.made(4 * MIB)
    wiring = wire_buffers([memory.mr.managed_mr.residency])
    with contextlib.ExitStack() as ends:
        ends.callback(wiring.undo)
        assert buffer.__cuda_array_interface__
        with memory.kernel("cuML"):
            memory.read(buffer.ptr, buffer.size)
    assert (memory.problems() == []) is wiring.active
