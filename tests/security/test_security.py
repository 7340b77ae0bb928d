# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""security.md is true: who can read what the package makes, and that reading runs nothing.

The umask is 0 here: what is closed to others is closed by the package.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import functools
import gzip
import logging
import os
import pickle
import re
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.dask.reports.worker_recording import unpacked
from rmm_uvm.errors import DataError
from rmm_uvm.integrations import prometheus
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.table import LeaseTable, RemoteTable
from rmm_uvm.report import Report
from rmm_uvm.residency import Budget
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.session import watch_command
from rmm_uvm.trace.log_lines import HEADER
from rmm_uvm.watch.telling.board import Board, read_board
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.generate import GeneratorConfig

from ..unit.top.fakes import FakeMachine

PACKAGE = Path(rmm_uvm.__file__).parent
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "understand" / "security.md"
MIB = 1 << 20
# Modules that run what a user asks them to run.
RUNNERS = {"integrations/jupyter.py", "run/program.py", "run/session.py"}
FORBIDDEN = {
    *("eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "torch.load"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "cloudpickle.loads", "marshal.loads"),
    *(
        "marshal.load",
        "numpy.load",
        "shelve.open",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
    ),
}


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def descriptors() -> dict[int, str]:
    """Return what this process has open, by number; without the listing's own, gone by then."""
    found = {}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are enough
        with contextlib.suppress(OSError):
            found[int(name)] = str(Path(f"/proc/self/fd/{name}").readlink())
    return found


def test_board_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "rmm-uvm"
    board = Board([folder])
    board.publish({"figures": 1})
    assert mode(folder) == 0o700
    assert [mode(path) for path in folder.iterdir()] == [0o600]
    board.remove()


@pytest.mark.parametrize("open_mode", [0o777, 0o750, 0o701])
def test_board_that_is_open_to_others_is_refused(tmp_path: Path, open_mode: int) -> None:
    folder = tmp_path / "rmm-uvm"
    folder.mkdir(mode=open_mode)
    with pytest.raises(rmm_uvm.errors.AvailabilityError, match="open to others"):
        Board([folder])
    assert read_board([folder]) == []


def of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files that are open belong to somebody else: one user has no others' files to try."""
    real = os.fstat

    def others(descriptor: int) -> os.stat_result:
        fields = list(real(descriptor))
        fields[stat.ST_UID] += 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", others)


def test_board_file_that_is_not_for_its_user_alone_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "rmm-uvm"
    board = Board([folder])
    figures = dict(interval_seconds=0.1, devices=[], snapshots=[], sources={}, findings=[])
    board.publish(figures)
    (path,) = folder.iterdir()
    assert len(read_board([folder])) == 1
    path.chmod(0o640)
    assert read_board([folder]) == []
    path.chmod(0o600)
    with monkeypatch.context() as patched:
        of_another_user(patched)
        assert read_board([folder]) == []
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert read_board([folder]) == []
    board.remove()


def test_harvest_board_is_for_its_user_alone(tmp_path: Path) -> None:
    board = rmm_uvm.harvest.HarvestBoard(str(tmp_path))
    assert [mode(path) for path in tmp_path.iterdir()] == [0o600]
    del board


def test_harvest_board_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"rmm_uvm-board-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(rmm_uvm.errors.AvailabilityError, match="is a link"):
        rmm_uvm.harvest.HarvestBoard(str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


def test_leases_are_for_their_user_alone() -> None:
    table = LeaseTable()
    try:
        path = Path("/dev/shm") / f"rmm-uvm-ipc-{table.name.hex()}"
        assert mode(path) == 0o600
    finally:
        table.forget()
        table.file.close()


def test_leases_that_are_not_for_their_user_alone_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = functools.partial(pytest.raises, rmm_uvm.errors.AvailabilityError)
    before = descriptors()
    table = LeaseTable()
    path = Path("/dev/shm") / f"rmm-uvm-ipc-{table.name.hex()}"
    try:
        RemoteTable(table.name).close()
        path.chmod(0o660)
        with refused(match="open to others"):
            RemoteTable(table.name)
        path.chmod(0o600)
        with monkeypatch.context() as patched:
            of_another_user(patched)
            with refused(match="another user"):
                RemoteTable(table.name)
        path.unlink()
        os.mkfifo(path, 0o600)
        with refused(match="not a file"):
            RemoteTable(table.name)
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
        with refused(match="cannot be opened"):
            RemoteTable(table.name)
    finally:
        table.forget()
        table.file.close()
    assert descriptors() == before


def test_trace_is_for_its_user_alone(tmp_path: Path) -> None:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, trace=tmp_path / "a.trace"):
        assert mode(tmp_path / "a.trace") == 0o600


@pytest.mark.parametrize("planted", ["file", "link"])
def test_trace_is_not_written_into_what_others_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    path, elsewhere = tmp_path / "a.trace", tmp_path / "elsewhere"
    elsewhere.touch()
    if planted == "link":
        path.symlink_to(elsewhere)
    else:
        path.touch()
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    watched = rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, trace=path, publish=False)
    with pytest.raises(DataError, match="another user" if planted == "file" else "exists"):
        watched.start()
    assert path.stat().st_size == elsewhere.stat().st_size == 0


def test_planted_file_or_link_is_no_way_to_a_report(tmp_path: Path) -> None:
    """What was planted under the name that reports once had on their way stays as it is."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".partial-a.json").symlink_to(victim)
    (tmp_path / ".partial-b.json").touch(0o666)
    saved_report().save_json(tmp_path / "a.json")
    saved_report().save_json(tmp_path / "b.json")
    assert victim.read_text() == "precious"
    assert (tmp_path / ".partial-b.json").stat().st_size == 0
    for name in ("a.json", "b.json"):
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).stat().st_uid == os.geteuid()


def test_report_under_way_is_made_new_and_beside_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Path, int]] = []
    opened = os.open

    def noting(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            made.append((Path(path), flags))
        return opened(path, flags, *arguments, **options)

    report = saved_report()
    monkeypatch.setattr(os, "open", noting)
    report.save_json(tmp_path / "a.json")
    ((path, flags),) = made
    assert path.parent == tmp_path
    assert flags & os.O_EXCL


def saved_report() -> Report:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, publish=False) as watched:
        pass
    return watched.report()


def test_generated_data_are_as_the_umask_has_it(tmp_path: Path) -> None:
    os.umask(0o027)
    config = GeneratorConfig(loans_per_quarter=20, months=12)
    folder = generated_data(config, directory=tmp_path / "cache")
    assert mode(folder) == 0o750
    assert {mode(path) for path in folder.rglob("*") if path.is_file()} == {0o640}
    assert list(folder.parent.iterdir()) == [folder]


def test_saved_report_is_as_the_umask_has_it(tmp_path: Path) -> None:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as watched:
        pass
    os.umask(0o027)
    watched.report().save_json(tmp_path / "a.json")
    assert mode(tmp_path / "a.json") == 0o640


def test_run_keeps_what_a_program_recorded_in_a_folder_of_its_user(tmp_path: Path) -> None:
    command = 'stat -c "%a %n" "$UVM_RUN_FOLDER" > "$0"'
    request = RunRequest(driver="simulated:64MiB", quiet=True)
    asked = ["sh", "-c", command, str(tmp_path / "seen")]
    assert watch_command(request, asked, FakeMachine().seams()) == 0
    rights, _, folder = (tmp_path / "seen").read_text().strip().partition(" ")
    assert rights == "700"
    assert Path(folder).name.startswith("rmm-uvm-run-")
    assert not Path(folder).exists()


def test_metrics_are_served_to_this_machine_alone() -> None:
    with (
        rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as watched,
        prometheus.start_http(0, monitor=watched) as server,
    ):
        assert server._server.socket.getsockname()[0] == "127.0.0.1"
        assert server.url.startswith("http://127.0.0.1:")


LISTENING = """
import contextlib
import sys

import psutil

import rmm_uvm.dask

if __name__ == "__main__":
    options = {"processes": False} if sys.argv[1] == "threads" else {}
    if sys.argv[2] != "default":
        options["dashboard_address"] = sys.argv[2]
    with rmm_uvm.dask.local_cluster(1, simulated="64MiB", **options):
        this = psutil.Process()
        for process in (this, *this.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                for socket in process.net_connections(kind="inet"):
                    if socket.status == psutil.CONN_LISTEN:
                        print(socket.laddr.ip)
"""


def addresses_of_a_cluster(tmp_path: Path, *arguments: str) -> set[str]:
    """Return where a local cluster listens, all of its processes."""
    script = tmp_path / "listening.py"
    script.write_text(LISTENING)
    ended = subprocess.run(
        [sys.executable, "-P", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(ended.stdout.split())


@pytest.mark.parametrize("workers", ["processes", "threads"])
def test_cluster_listens_to_this_machine_alone(tmp_path: Path, workers: str) -> None:
    assert addresses_of_a_cluster(tmp_path, workers, "default") == {"127.0.0.1"}


def test_cluster_that_is_opened_to_others_is_seen_to_be(tmp_path: Path) -> None:
    assert addresses_of_a_cluster(tmp_path, "processes", ":0") > {"127.0.0.1"}


def test_descriptors_of_a_watched_pool_close_on_exec_and_none_is_a_socket(tmp_path: Path) -> None:
    before = descriptors()
    node = rmm_uvm.simulated_node(2, "64MiB", backing=True)
    with rmm_uvm.reinitialize(
        driver=node.devices[0],
        ipc_pool_size="8MiB",
        device_budget=Budget(32 * MIB, neighbors=[1], board=str(tmp_path)),
        monitor={"trace": tmp_path / "a.trace"},
    ):
        opened = dict(descriptors().items() - before.items())
        targets = list(opened.values())
        for part in ("a.trace", "board"):
            assert [target for target in targets if part in target], targets
        assert [target for target in targets if target.startswith("socket:")] == []
        assert [
            target
            for number, target in opened.items()
            if not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        ] == []


def imported(tree: ast.AST) -> dict[str, str]:
    """Return what names stand for that a module imports: of a module, or of something in it."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({one.asname: one.name for one in node.names if one.asname})
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


def findings(text: str) -> list[str]:
    """Return the calls that would run what was read, or believe its sizes."""
    tree = ast.parse(text)
    names = imported(tree)
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        first, dot, rest = ast.unparse(call.func).partition(".")
        name = f"{names.get(first, first)}{dot}{rest}"
        keywords = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if name in FORBIDDEN or "True" in (keywords.get("allow_pickle"), keywords.get("shell")):
            found.append(name)
    return found


def findings_of_cython(text: str) -> list[str]:
    """Return the same of a compiled module, by its words: comments and documentation aside."""
    code = re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
    return re.findall(
        r"(?<![\w.])(?:eval|exec|compile)(?=\s*\()"
        r"|\b(?:pickle|cloudpickle|marshal|shelve|subprocess|popen|system)\b",
        code,
    )


def test_no_code_is_run_of_what_is_read() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := findings(path.read_text()))
    }
    assert set(found) <= RUNNERS, found
    compiled = list((DOCUMENT.parents[2] / "rmm_uvm").rglob("*.pyx"))
    assert compiled
    found = {path.name: findings_of_cython(path.read_text()) for path in compiled}
    assert not any(found.values()), found


@pytest.mark.parametrize(
    "text",
    [
        *("pickle.loads(answer)", "np.load(file, allow_pickle=True)"),
        *("subprocess.run(a, shell=True)", "from pickle import loads\nloads(answer)"),
        *("import pickle as p\np.loads(answer)", "from os import system as s\ns(answer)"),
        *("import numpy as np\nnp.load(file)", "eval(answer)"),
    ],
)
def test_call_that_would_run_what_was_read_is_found(text: str) -> None:
    assert len(findings(text)) == 1


@pytest.mark.parametrize(
    "text", ["from pickle import loads", "cimport os\nos.system(a)", "x = eval (answer)"]
)
def test_compiled_module_that_would_run_what_was_read_is_found(text: str) -> None:
    assert len(findings_of_cython(text)) == 1


def test_worker_answer_is_parsed_and_not_unpickled() -> None:
    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("code of a worker ran in the client",)

    for prefix in (b"", struct.pack("<Q", 17) + b'{"recording": {}}'):
        with pytest.raises(rmm_uvm.errors.DataError, match="no recording of a worker"):
            unpacked(prefix + pickle.dumps(Harm()))


def test_handles_are_neither_logged_nor_shown(caplog: pytest.LogCaptureFixture) -> None:
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    pool = rmm_uvm.ipc_pool("8MiB", driver=device)
    said: list[str] = []
    with caplog.at_level(logging.DEBUG):
        packed = pool.export(rmm.DeviceBuffer(size=MIB, mr=pool))
        handle = Handle.unpack(packed)
        said += [repr(handle), str(handle), repr(pool), repr(pool.leases())]
        for wrong in (packed, packed[:-1], b"x" * 300):  # of this process; cut; none at all
            with pytest.raises(rmm_uvm.errors.UvmError) as refused:
                rmm_uvm.ipc.open(wrong)
            said.append(str(refused.value))
        assert pool.revoke(packed)
    text = "\n".join([*said, caplog.text])
    for secret in (handle.slab_handle, handle.event_handle, packed):
        assert secret.hex() not in text
        assert repr(secret)[2:-1] not in text


@pytest.mark.parametrize("open_mode", [0o660, 0o604])
def test_harvest_board_that_is_open_to_others_is_refused(tmp_path: Path, open_mode: int) -> None:
    path = tmp_path / f"rmm_uvm-board-{os.geteuid()}"
    path.touch(open_mode)
    with pytest.raises(rmm_uvm.errors.AvailabilityError, match="open to other users"):
        rmm_uvm.harvest.HarvestBoard(str(tmp_path))
    assert path.stat().st_size == 0


def test_trace_is_closed_to_others_where_an_empty_file_was_open_to_them(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.touch(0o666)
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, trace=path, publish=False):
        assert mode(path) == 0o600


# Modules of the standard library and of others that speak to other machines.
SPEAKING = {
    *("urllib.request", "http.client", "ftplib", "smtplib", "poplib", "imaplib", "telnetlib"),
    *("xmlrpc.client", "requests", "httpx", "aiohttp", "urllib3", "websockets"),
}


def speaking(text: str) -> list[str]:
    """Return what a module imports that could send something."""
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    return [name for name in found if name in SPEAKING or name.partition(".")[0] in SPEAKING]


def test_nothing_is_sent_by_any_module() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := speaking(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text", ["import requests", "from urllib import request", "import urllib.request as u"]
)
def test_module_that_sends_something_is_found(text: str) -> None:
    assert len(speaking(text)) == 1


MEMORY_OF_READING = """
import pathlib, re, sys
from rmm_uvm.trace import read_rmm_log

def most_bytes():  # of this program: what getrusage says begins with the parent's
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) << 10

read_rmm_log(sys.argv[1])  # imports what it needs
before = most_bytes()
events = read_rmm_log(sys.argv[2]).events
print(len(events), events.nbytes, most_bytes() - before)
"""


@pytest.mark.parametrize("packed", [False, True])
def test_memory_of_a_reader_is_a_multiple_of_what_it_reads(tmp_path: Path, packed: bool) -> None:
    lines = (
        b"1,10:00:00.000001,allocate,0x7f0000000000,1048576,0x0\n"
        b"1,10:00:00.000001,free,0x7f0000000000,1048576,0x0\n"
    )
    for name, times in (("little", 5_000), ("log", 500_000)):
        text = HEADER + b"\n" + lines * times
        (tmp_path / name).write_bytes(gzip.compress(text, 1) if packed else text)
    ended = subprocess.run(
        [sys.executable, "-P", "-c", MEMORY_OF_READING, tmp_path / "little", tmp_path / "log"],
        capture_output=True,
        text=True,
        check=True,
    )
    events, event_bytes, most_bytes = map(int, ended.stdout.split())
    assert events == 1_000_000
    # Its events once, which are shorter than their lines, and what a block takes meanwhile.
    assert most_bytes < 1.3 * event_bytes + 16 * MIB


def every_test() -> set[str]:
    """Return the names of all tests of the repository, Python's and C++'s."""
    folder = DOCUMENT.parents[2]
    found = set()
    for path in (folder / "tests").rglob("test_*.py"):
        found.update(re.findall(r"^def test_(\w+)", path.read_text(), re.MULTILINE))
    for path in (folder / "cpp" / "tests").rglob("*_tests.cpp"):
        named = re.findall(r"^TEST(?:_F|_P)?\(\w+,\s*(\w+)\)", path.read_text(), re.MULTILINE)
        found.update(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in named)
    return found


def claims() -> set[str]:
    return {
        words.replace(" ", "_")
        for words in re.findall(r"\[([a-z0-9 ]+)\](?!\()", DOCUMENT.read_text())
    }


def test_every_claim_of_the_document_has_its_test() -> None:
    tests = every_test()
    assert claims()
    assert [name for name in claims() if not any(name in test for test in tests)] == []


# What no test can hold: the kernel, CUDA's driver or the loader keeps the promise.
KEPT_BY_OTHERS = {"libraries"}


def test_everything_that_is_opened_names_a_test() -> None:
    table = DOCUMENT.read_text().split("## What it opens")[1].split("\n\n")[1]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    without = {row[0] for row in rows if not re.search(r"\[[a-z0-9 ]+\](?!\()", " ".join(row))}
    assert len(rows) > 10
    assert without == KEPT_BY_OTHERS
