# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that raise while a process forks: a Ctrl-C, an alarm. Nothing stays locked.

CPython runs a handler at the first line of whatever Python function comes next, drops what it
raises there if that is a hook of ``os.fork``, and leaves the hook. So we have none in Python.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import rmm_uvm

START = """
import os, random, signal, sys, time, warnings
warnings.simplefilter("ignore")  # of forks with threads: ours are some
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait_for_all():
    "Return how many children ended, and how many of them as they should."
    ended = well = 0
    while True:
        try:
            status = os.waitpid(-1, 0)[1]
        except ChildProcessError:
            return ended, well
        ended, well = ended + 1, well + (status == 0)

def fork_and(do):
    "Fork; a child does something and ends, however often it is interrupted."
    parent = os.getpid()
    child, forks = None, True
    while True:  # nowhere but within `try`, where a signal may come as soon as a child begins
        try:
            if forks:
                forks = False
                child = os.fork()
            if os.getpid() == parent:
                return child
            os._exit(do())
        except KeyboardInterrupt:
            pass
"""


def run(source: str, runtime: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that forks; its board lies in `runtime`."""
    return subprocess.run(
        [sys.executable, "-P", "-X", "faulthandler", "-c", START + textwrap.dedent(source)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "RMM_UVM_DRIVER": "simulated:64MiB"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_process_interrupted_at_any_moment_of_a_thousand_forks_is_whole(tmp_path: Path) -> None:
    done = run(
        """
        import faulthandler
        import rmm_uvm
        installed = rmm_uvm.reinitialize(
            "8MiB", libraries=(), monitor={"interval_seconds": 0.001}
        )
        chance = random.Random(17)
        begin = time.monotonic()
        for _ in range(20):
            fork_and(lambda: 0)
        a_fork = (time.monotonic() - begin) / 20
        wait_for_all()
        interrupted = ended = well = number = 0
        while ended < 1000:  # some signals come before the fork, and then there is none
            number += 1
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 1.5 * a_fork))
                fork_and(lambda: 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            if number % 50 == 0:
                faulthandler.dump_traceback_later(60, exit=True)
                counts = wait_for_all()
                ended, well = ended + counts[0], well + counts[1]
                assert len(installed.monitor.samples()) > 0
        faulthandler.dump_traceback_later(30, exit=True)
        before = len(installed.monitor.samples())
        while len(installed.monitor.samples()) < before + 3:
            time.sleep(0.001)
        rmm_uvm.restore()
        print(ended == well, interrupted > 0)
        """,
        tmp_path,
    )

    assert done.stdout == "True True\n", done.stdout + done.stderr[-3000:]
    assert done.returncode == 0


def test_hook_in_python_is_dropped_when_a_signal_comes_during_the_fork(tmp_path: Path) -> None:
    """The twin of the test above: what happened to hooks such as we had."""
    done = run(
        """
        import ctypes, functools
        # A function in C: no line of Python runs between it and the fork.
        interrupt = functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGALRM)
        heard = []
        def hook():
            heard.append("parent")
        os.register_at_fork(before=interrupt, after_in_parent=hook)
        fork_and(lambda: 0)
        print(wait_for_all(), heard)
        """,
        tmp_path,
    )

    assert done.stdout == "(1, 1) []\n", done.stdout + done.stderr
    assert "Exception ignored" in done.stderr
    assert "KeyboardInterrupt" in done.stderr


def test_child_that_is_interrupted_at_its_first_moment_watches_and_holds_nothing(
    tmp_path: Path,
) -> None:
    done = run(
        """
        import rmm_uvm
        from rmm_uvm.ipc.table import LeaseTable, RemoteTable, is_own
        from rmm_uvm.watch.monitor import running
        installed = rmm_uvm.reinitialize("8MiB", libraries=())
        table = LeaseTable()
        reader = RemoteTable(table.name)
        def nothing_is_open():
            idle = not installed.monitor.running and running() == ()
            closed = table.file.closed and not reader.exporter_alive and not is_own(table.name)
            return 0 if idle and closed and len(installed.monitor.samples()) > 0 else 9
        for _ in range(100):
            child = fork_and(nothing_is_open)
            os.kill(child, signal.SIGINT)
        print(wait_for_all(), running() == (installed.monitor,), reader.exporter_alive)
        begun, says = os.pipe()
        last = fork_and(lambda: os.write(says, b"x") and signal.pause())  # lives on
        os.read(begun, 1)
        del table
        print(reader.exporter_alive)
        os.kill(last, signal.SIGKILL)
        wait_for_all()
        rmm_uvm.restore()
        """,
        tmp_path,
    )

    assert done.stdout == "(100, 100) True True\nFalse\n", done.stdout + done.stderr[-3000:]
    assert done.returncode == 0


BUSY = """
import threading
import rmm, rmm_uvm
from rmm_uvm.residency import Budget

installed = rmm_uvm.reinitialize(
    "8MiB", libraries=(), device_budget=Budget(16 << 20), monitor={"interval_seconds": 0.005}
)
mr, ending = installed.managed_mr, threading.Event()

def work(seed):
    chance, live = random.Random(seed), []
    while not ending.is_set():
        live.append(rmm.DeviceBuffer(size=chance.randrange(1, 4 << 20), mr=mr))
        rmm_uvm.touch(chance.choice(live))
        if len(live) > 6:
            live.pop(chance.randrange(len(live)))

def child(mine):
    signal.alarm(30)  # one that hangs is ended
    own = rmm.DeviceBuffer(size=1 << 20, mr=mr)
    rmm_uvm.touch(own)
    mine.clear()
    del own
    rmm_uvm.restore()
    return 0

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for each in threads:
    each.start()
mine = [rmm.DeviceBuffer(size=3 << 20, mr=mr) for _ in range(3)]
for _ in range(60):
    fork_and(lambda: child(mine))
    time.sleep(0.005)
print(wait_for_all())
ending.set()
for each in threads:
    each.join()
"""


def test_hints_are_there_before_threads_that_could_be_importing_them(tmp_path: Path) -> None:
    # A child of a fork waits for ever for a module that another thread was importing.
    done = run(
        """
        import rmm_uvm
        rmm_uvm.reinitialize
        print("rmm_uvm.pool.hints" in sys.modules)
        """,
        tmp_path,
    )
    assert done.stdout == "True\n", done.stderr


def test_children_of_forks_beside_threads_that_allocate_allocate_and_free(tmp_path: Path) -> None:
    done = run(BUSY, tmp_path)

    assert done.stdout == "(60, 60)\n", done.stdout + done.stderr[-3000:]
    assert done.returncode == 0


def test_extensions_have_one_list_of_what_hears_of_forks() -> None:
    places = {}
    for name in ("cuda", "harvest", "leases", "monitor", "mr", "residency", "trace"):
        library = ctypes.CDLL(importlib.import_module(f"rmm_uvm._lib.{name}").__file__)
        all_of_them = ctypes.c_char.in_dll(library, "_ZN7rmm_uvm16forks_of_processE")
        places[name] = ctypes.addressof(all_of_them)

    assert len(set(places.values())) == 1, places


def test_package_has_no_hook_of_forks_in_python() -> None:
    sources = list(Path(rmm_uvm.__path__[0]).rglob("*.py"))
    named = [path for path in sources if "register_at_fork" in path.read_text()]

    assert len(sources) > 100
    assert named == []
