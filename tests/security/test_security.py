# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""docs/security.md is true: who can read what the package makes, and that reading runs nothing.

The umask is 0 here: what is closed to others is closed by the package.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import functools
import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import rmm

import rmm_uvm
from rmm_uvm.integrations import prometheus
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.table import LeaseTable, RemoteTable
from rmm_uvm.run import session
from rmm_uvm.watch.board import Board, read_board

PACKAGE = Path(rmm_uvm.__file__).parent
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
MIB = 1 << 20
# Modules that run what a user asks them to run.
RUNNERS = {"integrations/jupyter.py", "run/program.py", "run/session.py"}
FORBIDDEN = {
    *("eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "torch.load"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "cloudpickle.loads", "marshal.loads"),
    *("marshal.load", "shelve.open", "subprocess.getoutput", "subprocess.getstatusoutput"),
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


def test_saved_report_is_as_the_umask_has_it(tmp_path: Path) -> None:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as watched:
        pass
    os.umask(0o027)
    watched.report().save_json(tmp_path / "a.json")
    assert mode(tmp_path / "a.json") == 0o640


def test_run_keeps_what_a_program_recorded_in_a_folder_of_its_user() -> None:
    source = Path(session.__file__).read_text()
    assert re.search(r"tempfile\.TemporaryDirectory\(prefix=\"rmm-uvm-run-\"\)", source)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rmm-uvm-run-") as folder:
        assert mode(Path(folder)) == 0o700


def test_metrics_are_served_to_this_machine_alone() -> None:
    with (
        rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as watched,
        prometheus.start_http(0, monitor=watched) as server,
    ):
        assert server._server.socket.getsockname()[0] == "127.0.0.1"
        assert server.url.startswith("http://127.0.0.1:")


def test_descriptors_of_a_watched_pool_close_on_exec_and_none_is_a_socket() -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    with rmm_uvm.reinitialize(driver="simulated:64MiB", ipc_pool_size="8MiB"):
        opened = sorted(set(os.listdir("/proc/self/fd")) - before)  # noqa: PTH208
        for name in opened:
            try:
                target = str(Path(f"/proc/self/fd/{name}").readlink())
                flags = fcntl.fcntl(int(name), fcntl.F_GETFD)
            except OSError:  # that of the listing itself
                continue
            assert not target.startswith("socket:"), target
            assert flags & fcntl.FD_CLOEXEC, target


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield what is called, by its dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def findings(text: str) -> list[str]:
    """Return the calls that would run what was read."""
    found = []
    for name, call in calls(ast.parse(text)):
        keywords = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if (
            name in FORBIDDEN
            or (name.endswith(".load") and keywords.get("allow_pickle") == "True")
            or keywords.get("shell") == "True"
        ):
            found.append(name)
    return found


def test_no_code_is_run_of_what_is_read() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := findings(path.read_text()))
    }
    assert set(found) <= RUNNERS, found


@pytest.mark.parametrize(
    "text",
    ["pickle.loads(answer)", "np.load(file, allow_pickle=True)", "subprocess.run(a, shell=True)"],
)
def test_call_that_would_run_what_was_read_is_found(text: str) -> None:
    assert len(findings(text)) == 1


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


def test_every_claim_of_the_document_has_its_test() -> None:
    named = {
        words.replace(" ", "_")
        for words in re.findall(r"\[([a-z ]+)\](?!\()", DOCUMENT.read_text())
    }
    tests = " ".join(name for name in globals() if name.startswith("test_"))
    assert named - {"worker_answer"}
    assert [name for name in named - {"worker_answer"} if name not in tests] == []
