# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Threads of ours block every signal, have a name for the kernel, and end with their owner."""

from __future__ import annotations

import gc
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm._lib.own_threads import OwnThread, usual_signals
from rmm_uvm.integrations.cudf import PrefetchSwitch
from rmm_uvm.recording.finding import Finding
from rmm_uvm.residency import Budget
from rmm_uvm.watch.session import Session
from rmm_uvm.watch.telling.delivery import Delivery, subscribe

from ...named_threads import becomes_true, others_ended, thread_ids
from ...support.snippets import REPOSITORY

MIB = 1 << 20
# A crash is reported by the thread that crashes.
OF_A_CRASH = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
BLOCKABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP} - OF_A_CRASH
# Movers help where a GPU migrates directly: cpp/tests/residency/piece_movers_threads_tests.cpp.
NAMES = {"budget", "sample", "advisor", "metrics", "cudf", "close"}
FINDING = Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")


def blocked_in(status: str) -> set[int]:
    """Return which signals a thread blocks whose ``/proc`` file has this text."""
    mask = int(re.findall(r"SigBlk:\s*(\w+)", status)[0], 16)
    return {number for number in BLOCKABLE if mask >> (number - 1) & 1}


def new_threads(before: set[int]) -> dict[int, tuple[str, set[int]]]:
    """Return the names of the threads that came since, and the signals that they block."""
    found = {}
    for number in thread_ids() - before:
        task = Path(f"/proc/self/task/{number}")
        with suppress(FileNotFoundError, ProcessLookupError):
            blocked = blocked_in((task / "status").read_text())
            found[number] = (task / "comm").read_text().strip(), blocked
    return found


def names_since(before: set[int]) -> set[str]:
    return {name.removeprefix("rmm_uvm ") for name, _ in new_threads(before).values()}


def mistakes(threads: dict[int, tuple[str, set[int]]]) -> list[str]:
    """Return what is wrong with threads of which all should be ours."""
    wrong = []
    for name, blocked in threads.values():
        if not name.startswith("rmm_uvm "):
            wrong.append(f"{name} is no name of ours")
        if missing := BLOCKABLE - blocked:
            wrong.append(f"{name} may get {sorted(missing)}")
    return wrong


@contextmanager
def every_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let there be one of each thread of ours; the one that tells of a signal is tested below."""
    may_close, closing = threading.Event(), threading.Event()
    close = Session.close

    def close_slowly(session: Session, *arguments: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            closing.set()
            may_close.wait(30)
        close(session, *arguments)

    monkeypatch.setattr(Session, "close", close_slowly)
    device = rmm_uvm.simulated_device("64MiB")
    with ExitStack() as ends:
        ends.callback(may_close.set)
        pool = rmm_uvm.managed_pool(
            driver=device, initial_pool_size="48MiB", device_budget=Budget(8 * MIB, board=None)
        )
        parts = [(pool.allocate(4 * MIB), 4 * MIB) for _ in range(4)]
        for part in 2 * parts:
            rmm_uvm.touch(part, mr=pool)
        for part in parts:
            ends.callback(pool.deallocate, *part)
        ends.enter_context(rmm_uvm.monitor(driver=device, publish=False, on_finding=None))
        server = ends.enter_context(rmm_uvm.monitor.start_http(0))
        ends.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        switch = PrefetchSwitch(lambda: 0, lambda _on: None)
        switch.start()
        ends.callback(switch.stop)
        forgotten = rmm_uvm.monitor(driver=device, publish=False, on_finding=None).start()
        del forgotten
        gc.collect()
        assert closing.wait(30)
        yield


def test_every_thread_of_ours_blocks_signals_has_a_name_and_is_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = thread_ids()
    with every_thread(monkeypatch):
        assert becomes_true(lambda: names_since(before) == NAMES)  # one names itself as it begins
        found = new_threads(before)
        assert mistakes(found) == []
        assert names_since(before) == NAMES
        gc.collect()
    gc.collect()
    assert others_ended(before)


def test_thread_that_is_begun_otherwise_is_found() -> None:
    before = thread_ids()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    wrong = mistakes(new_threads(before))
    assert not others_ended(before, patience_seconds=0.01)
    end.set()
    thread.join()
    assert "is no name of ours" in wrong[0]
    assert "may get" in wrong[1]


def test_thread_that_tells_of_a_signal_blocks_signals_and_has_a_name() -> None:
    program = """
import os, signal, threading
from pathlib import Path
from rmm_uvm.run.tidying import tell_before

def tell(number):
    task = Path(f"/proc/self/task/{threading.get_native_id()}")
    print((task / "comm").read_text(), (task / "status").read_text(), flush=True)

tell_before(tell)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert done.stdout.startswith("rmm_uvm ending\n")
    assert blocked_in(done.stdout) == BLOCKABLE


@pytest.mark.parametrize(("ends", "left"), [(True, []), (False, ["rmm_uvm twin"])])
def test_program_that_stops_nothing_waits_for_threads_that_run_python(
    ends: bool, left: list[str]
) -> None:
    program = f"""
import atexit, threading, time
from pathlib import Path

def ours():
    "Return the names of threads of ours; one that was joined may be there for a moment."
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found.append((task / "comm").read_text().strip())
        except OSError:
            continue
    return [name for name in found if name.startswith("rmm_uvm")]

def tell():
    until = time.monotonic() + (10 if {ends} else 0.5)
    while ours() and time.monotonic() < until:
        time.sleep(0.001)
    print(*ours(), sep="\\n")

atexit.register(tell)  # first: it is the last to run
import rmm_uvm
from rmm_uvm._lib.own_threads import OwnThread, usual_signals
from rmm_uvm.integrations.cudf import PrefetchSwitch
device = rmm_uvm.simulated_device("64MiB")
rmm_uvm.reinitialize("16MiB", driver=device, device_budget=None, libraries=())
server = rmm_uvm.monitor.start_http(0)
PrefetchSwitch(lambda: 0, lambda on: None).start()
if not {ends}:
    OwnThread(target=threading.Event().wait, name="rmm_uvm twin", daemon=True).start()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[:-1] == (left or [""]), done.stderr


def test_thread_that_one_of_ours_begins_has_the_usual_signals_of_the_program() -> None:
    usual: list[set[int]] = []

    def begin_another() -> None:
        other = OwnThread(target=look, name="rmm_uvm other")
        other.start()
        other.join()

    def look() -> None:
        with usual_signals():
            usual.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    thread = OwnThread(target=begin_another, name="rmm_uvm first")
    thread.start()
    thread.join()
    assert usual == [signal.pthread_sigmask(signal.SIG_BLOCK, ())]


def test_thread_that_begins_one_of_ours_gets_its_signals_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    thread = OwnThread(target=lambda: None, name="rmm_uvm nothing")
    thread.start()
    thread.join()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    with pytest.raises(RuntimeError):
        thread.start()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


class _Handler(logging.Handler):
    """A handler of logs that does something."""

    def __init__(self, do: Callable[[], object]) -> None:
        super().__init__()
        self._do = do

    def emit(self, record: logging.LogRecord) -> None:
        self._do()


@pytest.mark.parametrize("how", ["callback", "listener", "log", ""])
def test_process_that_code_of_users_begins_may_be_ended(how: str) -> None:
    statuses = []

    def begin(*_: object) -> None:
        done = subprocess.run(["cat", "/proc/self/status"], capture_output=True, check=True)
        statuses.append(done.stdout.decode())

    def work() -> None:
        if how:
            Delivery(begin if how == "callback" else "log").deliver([FINDING])
        else:  # the twin: what a process would be that our own code begins
            begin()

    logger, handler = logging.getLogger("rmm_uvm.watch"), _Handler(begin)
    unsubscribe = subscribe(begin) if how == "listener" else lambda: None
    if how == "log":
        logger.addHandler(handler)
    try:
        thread = OwnThread(target=work, name="rmm_uvm test")
        thread.start()
        thread.join()
    finally:
        unsubscribe()
        logger.removeHandler(handler)
    assert len(statuses) == 1
    assert (signal.SIGTERM in blocked_in(statuses[0])) is not bool(how)


# How threads begin, where nobody sees to the above.
_BEGINS = {
    ".py": re.compile(r"\bthreading\.(?:Thread|Timer)\(|start_new_thread|ThreadPoolExecutor\("),
    ".pyx": re.compile(r"\bthreading\.(?:Thread|Timer)\(|start_new_thread|ThreadPoolExecutor\("),
    ".cpp": re.compile(r"std::j?thread\b(?!::)|std::async|pthread_create"),
    ".hpp": re.compile(r"std::j?thread\b(?!::)|std::async|pthread_create"),
}


@pytest.mark.parametrize("folder", ["rmm_uvm", "cpp/src", "cpp/include"])
def test_threads_of_ours_begin_in_one_place(folder: str) -> None:
    paths = [path for path in (REPOSITORY / folder).rglob("*") if path.suffix in _BEGINS]
    assert paths
    begin = [path.name for path in paths if _BEGINS[path.suffix].search(path.read_text())]
    assert set(begin) <= {"own_thread.cpp", "own_thread.hpp"}


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (".py", "threading.Thread(target=work).start()"),
        (".pyx", "_thread.start_new_thread(work, ())"),
        (".cpp", "std::thread{[] { work(); }}.detach();"),
        (".hpp", "std::vector<std::jthread> threads_;"),
    ],
)
def test_thread_that_begins_elsewhere_is_found(kind: str, line: str) -> None:
    assert _BEGINS[kind].search(line)
