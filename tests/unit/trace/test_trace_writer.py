# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The writer and its file: made new, for the user alone, and never a danger to the program."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmm_uvm
from rmm_uvm._lib import trace as compiled
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.support.output import check_trace
from rmm_uvm.trace import EVENT_DTYPE, TraceWriter, read

from .conftest import BASE, make_samples


def test_layouts_agree_with_the_compiled_ones() -> None:
    assert EVENT_DTYPE.itemsize == compiled.EVENT_BYTES
    assert SAMPLE_DTYPE.itemsize == compiled.SAMPLE_BYTES


def test_file_is_for_the_user_alone(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "a", {}) as writer:
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
        assert writer.path == str(tmp_path / "a")


def test_existing_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("precious")
    with pytest.raises(DataError, match="exists: name another file, or remove it first"):
        TraceWriter(path, {})
    assert path.read_text() == "precious"


def test_existing_file_with_overwrite_is_replaced_not_shared(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")
    with path.open() as reader, TraceWriter(path, {}, overwrite=True):
        assert reader.read() == "old"
    assert not read(path).truncated


def test_empty_file_is_used(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    TraceWriter(tmp_path / "empty", {}).close()
    assert len(read(tmp_path / "empty").events) == 0


def test_empty_file_that_others_could_read_is_for_its_user_alone_then(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    path.chmod(0o666)
    TraceWriter(path, {}).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_empty_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "empty"
    path.touch()
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(DataError, match="empty cannot be written: it belongs to another user"):
        TraceWriter(path, {})
    with pytest.raises(ConfigurationError, match="empty belongs to another user"):
        check_trace("--trace", path)
    assert path.stat().st_size == 0


def test_link_to_an_empty_file_is_refused_and_the_file_kept(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("empty")
    with pytest.raises(DataError, match="link exists: name another file"):
        TraceWriter(tmp_path / "link", {})
    with pytest.raises(ConfigurationError, match="link is not a regular file"):
        check_trace("--trace", tmp_path / "link")
    assert (tmp_path / "empty").stat().st_size == 0


def test_file_that_is_filled_between_two_looks_is_refused_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "empty"
    path.touch()
    looked = os.lstat

    def fill_after(name: Any, **options: Any) -> os.stat_result:
        found = looked(name, **options)
        path.write_text("precious")
        return found

    monkeypatch.setattr(os, "lstat", fill_after)
    with pytest.raises(DataError, match="exists: name another file"):
        TraceWriter(path, {})
    assert path.read_text() == "precious"


def test_unwritable_place_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("loop")
    (tmp_path / "loop").symlink_to("link")
    for path in (tmp_path, tmp_path / "no" / "folder", tmp_path / "loop", "a\0b", "/dev/full"):
        with pytest.raises(DataError) as caught:
            TraceWriter(path, {})
        assert "\n" not in str(caught.value)


def test_facts_that_are_no_json_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        TraceWriter(tmp_path / "a", {"device": object()})
    with pytest.raises(DataError, match=r"facts take 1\d* bytes, and at most 1048576"):
        TraceWriter(tmp_path / "a", {"text": "x" * (1 << 20)})
    assert not (tmp_path / "a").exists()


def test_full_disk_stops_the_trace_and_not_the_program(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    writer = TraceWriter(tmp_path / "full", {})
    writer.observe(mr)
    mr.deallocate(mr.allocate(1000), 1000)
    writer.flush()
    whole = writer.counts["written_bytes"]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 20, limits[1]))
        for nbytes in range(1, 3000):
            mr.deallocate(mr.allocate(nbytes), nbytes)
        writer.flush()
        writer.samples(make_samples(10))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)

    assert writer.failed == f"{tmp_path / 'full'}: File too large; tracing has stopped"
    mr.deallocate(mr.allocate(1000), 1000)
    writer.close()
    mr.observe(None)
    trace = read(tmp_path / "full")
    assert (len(trace.events), trace.truncated, trace.damaged) == (2, True, "")
    assert (tmp_path / "full").stat().st_size == whole


def test_closed_writer_ignores_what_follows(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "closed", {})
    writer.close()
    writer.close()
    size = (tmp_path / "closed").stat().st_size
    writer.allocated(0, BASE, 1000)
    writer.stage_begin("late")
    writer.samples(make_samples(3))
    writer.flush()
    assert writer.failed == ""
    assert (tmp_path / "closed").stat().st_size == size


def test_dropped_writer_closes_its_file(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "dropped", {})
    writer.allocated(0, BASE, 1000)
    del writer
    trace = read(tmp_path / "dropped")
    assert (len(trace.events), trace.truncated) == (1, False)


def test_impossible_memory_is_counted_as_dropped(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "odd", {}) as writer:
        writer.allocated(0, 1 << 60, 8)
        writer.freed(0, BASE, 1 << 60)
        writer.touched(40_000, BASE, 8)
        writer.allocated(0, BASE, 8)
        assert writer.counts["dropped"] == 3
    trace = read(tmp_path / "odd")
    assert (len(trace.events), trace.dropped) == (1, 3)


def test_samples_of_another_layout_are_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "samples", {}) as writer:
        for rows in (np.zeros(3), np.zeros(3, EVENT_DTYPE)):
            with pytest.raises(TypeError, match="SAMPLE_DTYPE"):
                writer.samples(rows)
        assert writer.counts["samples"] == 0


def test_a_day_of_samples_once_a_second_takes_less_than_3_mib(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "day", {}) as writer:
        writer.samples(make_samples(86_400))
        assert writer.counts["written_bytes"] < 3 << 20
    assert len(read(tmp_path / "day").samples) == 86_400


def test_trace_is_readable_while_it_is_written(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "live", {}) as writer:
        for number in range(3):
            writer.allocated(0, BASE + number * 256, 8)
            writer.flush()
            assert len(read(tmp_path / "live").events) == number + 1
        assert read(tmp_path / "live").truncated


def test_forked_child_writes_nothing_and_does_not_hang(tmp_path: Path) -> None:
    program = f"""
import os
from rmm_uvm.trace import TraceWriter, read
writer = TraceWriter({str(tmp_path / "forked")!r}, {{}})
writer.allocated(0, 4096, 8)
child = os.fork()
if child == 0:
    writer.allocated(0, 8192, 8)
    writer.flush()
    assert "forked" in writer.failed
    writer.close()
    del writer
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
writer.allocated(0, 12288, 8)
writer.close()
assert read({str(tmp_path / "forked")!r}).events["address"].tolist() == [4096, 12288]
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


def test_program_that_dies_leaves_what_was_flushed(tmp_path: Path) -> None:
    program = f"""
import os
from rmm_uvm.trace import TraceWriter
writer = TraceWriter({str(tmp_path / "killed")!r}, {{}})
writer.allocated(0, 4096, 8)
writer.flush()
writer.allocated(0, 8192, 8)
os._exit(1)
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=False, timeout=60)
    trace = read(tmp_path / "killed")
    assert (len(trace.events), trace.truncated, trace.damaged) == (1, True, "")


def test_descriptor_is_not_inherited(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "own", {}):
        numbers = [
            int(one.name)
            for one in Path("/proc/self/fd").iterdir()
            if one.is_symlink() and str(one.readlink()).endswith("/own")
        ]
        assert [os.get_inheritable(number) for number in numbers] == [False]


def _descriptor_of(path: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return next(int(link.name) for link in links if os.path.realpath(link) == str(path))


@pytest.mark.parametrize("ask", ["failed", "counts"])
def test_disk_that_is_slow_does_not_stop_the_interpreter(tmp_path: Path, ask: str) -> None:
    path = tmp_path.resolve() / "slow"
    threads, writer = set(threading.enumerate()), TraceWriter(path, {})
    full_bytes, end, hurry = 1 << 16, os.pipe(), os.pipe()
    os.dup2(end[1], _descriptor_of(path))  # the disk: takes nothing more until it is read
    os.write(end[1], bytes(full_bytes - 4096))
    # Reads in place of the thread below where an interpreter that stands still keeps that from it.
    rescue = (
        f"import os, time; os.read({hurry[0]}, 1); time.sleep(30); print('rescued', flush=True)\n"
        f"while os.read({end[0]}, {full_bytes}): pass"
    )
    rescuer = subprocess.Popen(
        [sys.executable, "-c", rescue], pass_fds=[end[0], hurry[0]], stdout=subprocess.PIPE
    )
    for number in range(3000):
        writer.allocated(0, BASE + number * 4096, 4096)
    flushing = threading.Thread(target=writer.flush, daemon=True)
    flushing.start()
    while struct.unpack("i", fcntl.ioctl(end[0], termios.FIONREAD, bytes(4)))[0] < full_bytes:
        pass
    asking = threading.Event()

    def drain() -> None:
        asking.wait(30)
        os.read(end[0], full_bytes)

    draining = threading.Thread(target=drain, daemon=True)
    if ask == "counts":  # waits for the events' lock, which one that waits for the disk holds
        writer.allocated(0, BASE, 4096)
        waiting = threading.Thread(target=writer.flush, daemon=True)
        waiting.start()
        waiting.join(0.1)
    draining.start()
    os.write(hurry[1], b"x")
    asking.set()
    getattr(writer, ask)
    rescuer.kill()
    assert rescuer.communicate(timeout=30)[0] == b""
    for thread in set(threading.enumerate()) - threads:
        thread.join(30)
    writer.close()
    for descriptor in (*end, *hurry):
        os.close(descriptor)


def test_events_while_it_is_closed_are_written_or_not_counted(tmp_path: Path) -> None:
    for number in range(200):
        writer = TraceWriter(tmp_path / str(number), {})
        began = threading.Barrier(5)

        def note(
            begin: int, writer: TraceWriter = writer, began: threading.Barrier = began
        ) -> None:
            began.wait(30)
            for index in range(300):
                writer.allocated(0, BASE + (begin + index) * 4096, 4096)

        threads = [threading.Thread(target=note, args=(1000 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        began.wait(30)
        while writer.counts["allocations"] < 100:
            pass
        writer.close()
        for thread in threads:
            thread.join(30)
        assert len(read(tmp_path / str(number)).events) == writer.counts["allocations"]


def test_closed_writers_of_a_pool_take_no_memory(tmp_path: Path) -> None:
    def used_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    device = rmm_uvm.simulated_device("64MiB")
    before_bytes = used_bytes()
    for number in range(100):
        with TraceWriter(tmp_path / str(number), {}) as writer:
            writer.observe(device)
    assert used_bytes() - before_bytes < 20 << 20
