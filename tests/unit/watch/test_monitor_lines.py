# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic by the lines of the program that allocated what moved, to the byte."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rmm

import rmm_uvm
import rmm_uvm.trace
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.recording.line_traffic import LineSum, LineTraffic
from rmm_uvm.report import Report
from rmm_uvm.watch.monitor import Monitor

from .monitors import MIB, Make

HERE = __file__


@pytest.fixture
def pool(device: SimulatedDevice) -> UvmResourceAdaptor:
    found = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="64MiB", device_budget=None, prefetch="never"
    )
    rmm.mr.set_per_device_resource(0, found)
    return found


def lines_of(monitor: Monitor) -> LineTraffic:
    found = monitor.recording().lines
    assert found is not None
    return found


def by_function(monitor: Monitor) -> dict[str, LineSum]:
    return {
        one.line.function.rpartition(".")[2]: one
        for one in lines_of(monitor).by_line()
        if one.line is not None and one.line.file == HERE
    }


def first(pool: UvmResourceAdaptor, nbytes: int) -> int:
    return pool.allocate(nbytes)


def second(pool: UvmResourceAdaptor, nbytes: int) -> int:
    return pool.allocate(nbytes)


@pytest.mark.parametrize("which", [0, 1])
def test_bytes_are_those_of_the_line_whose_memory_moved(
    make: Make, device: SimulatedDevice, pool: UvmResourceAdaptor, which: int
) -> None:
    with make(lines=True) as m:
        held = [first(pool, 4 * MIB), second(pool, 4 * MIB)]
        for pointer in held:
            device.touch(pointer, 4 * MIB, write=True)
        device.cpu_touch(held[which], 4 * MIB)
        device.touch(held[which], 4 * MIB)
        found = by_function(m)
    moved, other = found[("first", "second")[which]], found[("second", "first")[which]]
    assert moved.moved.read_back_bytes == moved.moved.faulted_bytes == 4 * MIB
    assert moved.moved.copied_bytes == 8 * MIB
    assert moved.times == 1.0
    assert other.moved.copied_bytes == 0
    assert other.peak_bytes == other.live_bytes == 4 * MIB
    assert m.sources["lines"]
    assert lines_of(m).how == "every byte that moved on the simulated device is known"


def test_a_budget_brings_back_evicts_and_drops(make: Make, device: SimulatedDevice) -> None:
    pool = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="64MiB", device_budget="16MiB", prefetch="auto"
    )
    rmm.mr.set_per_device_resource(0, pool)
    with make(lines=True) as m:
        parts = [rmm.DeviceBuffer(size=8 * MIB, mr=pool) for _ in range(4)]
        for _ in range(3):
            for part in parts:
                rmm_uvm.touch(part, mr=pool)
                device.touch(part.ptr, part.size, write=True)
        del part, parts
        pool.managed_mr.residency.flush()
        recording = m.recording()
    total = m.snapshot()
    found = next(iter(by_function(m).values()))
    assert found.allocations == 4
    assert found.live_bytes == 0
    assert found.moved.to_device_bytes == total.host_to_device_bytes > 32 * MIB
    assert found.moved.evicted_bytes == total.device_to_host_bytes > 32 * MIB
    assert lines_of(m).objects[0].nbytes == 8 * MIB
    told = Report(recording).text(60)
    _, title, ours = told.partition("look here first\n")
    assert title
    assert ours.startswith(
        "All of it fits on the device. What is small is the budget of\n16.00 MiB."
    )
    assert "\n1. test_monitor_lines.py:" in ours
    assert f"its memory comes back {found.times:.0f} times, " in ours
    assert max(map(len, ours.splitlines())) <= 60


def test_of_buffers_that_share_blocks_nothing_is_lost_or_counted_twice(
    make: Make, device: SimulatedDevice
) -> None:
    # On a device of 64 MiB, which evicts as it is touched: nothing goes on beside the program.
    pool = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="96MiB", device_budget=None, prefetch="never"
    )
    rmm.mr.set_per_device_resource(0, pool)
    nbytes = 300 * 1024  # parts of several in a block of 2 MiB
    before = pool.allocate(nbytes)
    with make(lines=True) as m:
        held = [first(pool, nbytes) for _ in range(250)]
        for _ in range(3):
            for pointer in [before, *held]:
                device.touch(pointer, nbytes, write=True)
        for pointer in [before, *held[-10:]]:
            device.cpu_touch(pointer, nbytes)
        moved = {one.line: one.moved for one in lines_of(m).by_line()}
        total = m.snapshot()
    to_host = [each.evicted_bytes + each.read_back_bytes for each in moved.values()]
    assert sum(to_host) == total.device_to_host_bytes > 100 * MIB
    to_device = [each.to_device_bytes for each in moved.values()]
    assert sum(to_device) == total.host_to_device_bytes > 100 * MIB
    assert 0 < moved[None].copied_bytes <= 6 * 2 * nbytes  # of what was allocated before


def test_each_thread_has_its_own_line(make: Make, pool: UvmResourceAdaptor) -> None:
    def in_thread(allocate: Callable[[UvmResourceAdaptor, int], int]) -> None:
        for _ in range(200):
            pool.deallocate(allocate(pool, 4096), 4096)

    with make(lines=True) as m:
        threads = [threading.Thread(target=in_thread, args=(each,)) for each in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = by_function(m)
    assert found["first"].allocations == found["second"].allocations == 200


def test_generators_and_code_without_a_file_have_lines(
    make: Make, pool: UvmResourceAdaptor
) -> None:
    def generator() -> Iterator[int]:
        yield first(pool, 4096)
        yield pool.allocate(8192)

    with make(lines=True) as m:
        held = list(generator())
        made: dict[str, int] = {}
        exec(compile("pointer = pool.allocate(512)", "<cell 1>", "exec"), {"pool": pool}, made)
        lines = lines_of(m)
        found = by_function(m)
    assert found["first"].live_bytes == 4096
    assert found["generator"].live_bytes == 8192
    # The code was made here, so it is this line's; the path has its own line as well.
    assert found[test_generators_and_code_without_a_file_have_lines.__name__].live_bytes == 512
    (path,) = [each for each in lines.paths if each.live_bytes == 512]
    assert lines.lines[path.lines[0]].file == "<cell 1>"
    assert len(held) == 2


def test_code_that_is_made_where_other_was_freed_has_its_own_lines(
    make: Make, pool: UvmResourceAdaptor
) -> None:
    # As when an edited module is loaded anew, and when functions arrive one after another.
    with make(lines=True) as m:
        for number in range(30):
            for name in ("one", "other"):
                made: dict[str, Callable[[UvmResourceAdaptor], int]] = {}
                text = "\n" * number + f"def {name}(pool):\n  return pool.allocate(512)"
                exec(compile(text, "<cell>", "exec"), made)
                made.pop(name)(pool)
        lines = lines_of(m)
    innermost = [lines.lines[path.lines[0]] for path in lines.paths if path.allocations]
    told = [(line.function, line.number) for line in innermost if line.file == "<cell>"]
    assert sorted(told) == sorted(
        (name, number + 2) for number in range(30) for name in ("one", "other")
    )


def test_a_monitor_that_ends_leaves_the_lines_of_another(
    make: Make, pool: UvmResourceAdaptor
) -> None:
    def again() -> int:
        made = rmm_uvm.managed_pool(driver=pool.driver, initial_pool_size="2MiB")
        return first(pool, 4096) + 0 * second(made, 4096)

    with make(lines=True) as m:
        with make(lines=True) as later:
            again()
        again()
        ended = by_function(later)
        found = by_function(m)
    assert found["first"].allocations == found["second"].allocations == 2
    assert ended["first"].allocations == ended["second"].allocations == 1


def test_a_forked_child_counts_nothing(make: Make, pool: UvmResourceAdaptor) -> None:
    with make(lines=True) as m:
        first(pool, 4096)
        child = os.fork()
        if child == 0:  # has a copy of the account: what it counts there, it tells by its status
            status = 3
            try:
                first(pool, 4096)
                second(pool, 4096)
                found = by_function(m)
                status = (found["first"].allocations != 1) + 2 * ("second" in found)
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        found = by_function(m)
    assert os.waitstatus_to_exitcode(status) == 0
    assert found["first"].allocations == 1
    assert "second" not in found


def test_text_of_a_line_is_that_of_the_file_as_it_is_now(
    make: Make, pool: UvmResourceAdaptor, tmp_path: Path
) -> None:
    file = tmp_path / "etl.py"
    kept = []

    def texts_of(code: str) -> dict[int, str]:
        file.write_text(code)
        kept.append(compile(code, str(file), "exec"))
        exec(kept[-1], {"pool": pool})
        return {one.number: one.text for one in lines_of(m).lines if one.file == str(file)}

    with make(lines=True) as m:
        assert texts_of("pool.allocate(512)\n") == {1: "pool.allocate(512)"}
        edited = texts_of("# moved down\npool.allocate(512)\n")
    assert edited[2] == "pool.allocate(512)"


def test_lines_of_code_are_cut_and_reports_say_that_they_hold_them(
    make: Make, pool: UvmResourceAdaptor, tmp_path: Path
) -> None:
    file = tmp_path / "etl.py"
    file.write_text(f"pool.allocate(512)  # {'x' * 60} secret")
    with make(lines=True) as m:
        exec(compile(file.read_text(), str(file), "exec"), {"pool": pool})
        recording = m.recording()
    told = Report(recording).to_json()
    assert f'"pool.allocate(512)  # {"x" * 57}\\u2026"' in told
    assert "secret" not in told
    assert "holds lines of the program and paths of its files" in Report(recording).html()


def test_comprehensions_are_lines_of_their_function(
    make: Make, pool: UvmResourceAdaptor, tmp_path: Path
) -> None:
    file = tmp_path / "etl.py"
    code = """
def load():
    of_list = [pool.allocate(512) for _ in range(2)]
    of_sets = {n: [{pool.allocate(512)} for _ in range(2)] for n in range(2)}
    return sum(pool.allocate(512) for _ in range(2))
load()
[pool.allocate(512) for _ in range(2)]
"""
    file.write_text(code)
    with make(lines=True) as m:
        exec(compile(code, str(file), "exec"), {"pool": pool})
        lines = lines_of(m)
    paths = [
        [
            (one.function, one.number)
            for one in map(lines.lines.__getitem__, path.lines)
            if one.file == str(file)
        ]
        for path in lines.paths
        if path.allocations
    ]
    top = ("<module>", 6)
    assert paths == [
        [("load", 3), top],
        [("load", 4), top],
        [("load", 5), ("load", 5), top],  # a generator is called by who takes from it
        [("<module>", 7)],
    ]


def test_a_trace_beside_it_has_every_allocation(
    make: Make, pool: UvmResourceAdaptor, tmp_path: Path
) -> None:
    path = tmp_path / "run.trace"
    with make(lines=True, trace=path) as m:
        pool.deallocate(first(pool, 4096), 4096)
        assert by_function(m)["first"].allocations == 1
    pool.deallocate(first(pool, 4096), 4096)  # not any more
    assert len(rmm_uvm.trace.read(path).events) == 2
    assert by_function(m)["first"].allocations == 1


def test_without_a_pool_of_ours_no_line_is_told_and_the_reason_is(make: Make) -> None:
    rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
    with make(lines=True) as m:
        assert m.recording().lines is None
        assert "pool" in m.sources["lines"].reason
    with make() as m:
        assert m.recording().lines is None
        assert "lines" not in m.sources


def test_as_json_and_as_a_page_all_lines_are_there(
    make: Make, device: SimulatedDevice, pool: UvmResourceAdaptor
) -> None:
    from rmm_uvm.report.as_dict import as_dict
    from rmm_uvm.report.page import sections

    with make(lines=True) as m:
        pointer = first(pool, 4 * MIB)
        device.touch(pointer, 4 * MIB, write=True)
        device.cpu_touch(pointer, 4 * MIB)
        second(pool, 4096)
        recording = m.recording()
    told = as_dict(recording)["lines"]
    assert [one["function"] for one in told["by_line"]][:2] == ["first", "second"]
    assert told["by_line"][0]["text"] == "return pool.allocate(nbytes)"
    assert told["by_line"][0]["read_back_bytes"] == 4 * MIB
    assert told["objects"][0]["bytes"] == 4 * MIB
    inner, outer = (told["lines"][number] for number in told["by_path"][0]["lines"][:2])
    assert inner["function"] == "first"
    assert outer["function"] == test_as_json_and_as_a_page_all_lines_are_there.__name__
    assert [one.title for one in sections(recording, 1) if one.title == "Which line"]


def test_calls_are_as_wide_as_what_was_copied_of_their_memory(
    make: Make, device: SimulatedDevice, pool: UvmResourceAdaptor
) -> None:
    from rmm_uvm.report.flame import flame

    with make(lines=True) as m:
        assert flame(lines_of(m)) is None
        held = [first(pool, 4 * MIB), second(pool, 8 * MIB)]
        for pointer, nbytes in zip(held, (4 * MIB, 8 * MIB), strict=True):
            device.touch(pointer, nbytes, write=True)
            device.cpu_touch(pointer, nbytes)
        chart = flame(lines_of(m))
    assert chart is not None
    bands = {
        str(name): (right - left, top)
        for mark in chart.marks
        for name, left, right, top in zip(
            *(mark.data[each] for each in ("name", "left", "right", "top")), strict=True
        )
        if "test_monitor_lines.py" in str(name)
    }
    widths = {name.partition(" ")[0]: found for name, found in bands.items()}
    assert widths["first"][0] == 4 * MIB
    assert widths["second"][0] == 8 * MIB
    (mine, top) = next(each for name, each in widths.items() if name.startswith("test_calls"))
    assert mine == 12 * MIB
    assert top < widths["first"][1]
    assert chart.x.end == 12 * MIB


def test_a_line_names_several_callers(
    make: Make, device: SimulatedDevice, pool: UvmResourceAdaptor
) -> None:
    def from_here() -> int:
        return first(pool, 4 * MIB)

    def from_there() -> list[int]:
        return [first(pool, 2 * MIB) + 0 * first(pool, 2 * MIB) for _ in range(2)]

    with make(lines=True) as m:
        held = [(from_here(), 4 * MIB), *((pointer, 2 * MIB) for pointer in from_there())]
        for pointer, nbytes in 3 * held:
            device.touch(pointer, nbytes, write=True)
            device.cpu_touch(pointer, nbytes)
        recording = m.recording()
    lines = lines_of(m)
    assert [path.allocations for path in lines.paths if path.allocations] == [1, 4]
    assert [lines.paths[one.path].allocations for one in lines.objects] == [1, 4, 4]
    told = Report(recording).text(100)
    number = first.__code__.co_firstlineno + 1
    assert f"1. test_monitor_lines.py:{number} in first: return pool.allocate(nbytes)\n" in told
    _, _, callers = " ".join(told.split()).partition("called by ")
    assert re.match(
        r"test_monitor_lines.py:\d+ in \S*from_here: 20.00 MiB; "
        r"test_monitor_lines.py:\d+ in \S*from_there.*: 20.00 MiB",
        callers,
    )
