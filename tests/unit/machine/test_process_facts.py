# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Facts about processes: of this one and its children, and of what has ended or has no name."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from rmm_uvm.machine.process_facts import command_of, descendants, is_alive, name_of, user_of

NOBODY = 2**22 + 1  # above the largest PID that Linux gives


def test_facts_of_this_process_are_told() -> None:
    assert name_of(os.getpid()) == Path("/proc/self/comm").read_text().strip()
    assert sys.executable.rpartition("/")[2] in command_of(os.getpid())
    assert user_of(os.getpid()) == pwd.getpwuid(os.geteuid()).pw_name
    assert is_alive(os.getpid())


def test_facts_of_no_process_are_empty() -> None:
    assert (name_of(NOBODY), command_of(NOBODY), user_of(NOBODY)) == ("", "", "")
    assert not is_alive(NOBODY)
    assert descendants(NOBODY) == {NOBODY}


def test_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_name(uid: int) -> None:
        raise KeyError(uid)

    (tmp_path / "7").mkdir()
    monkeypatch.setattr(pwd, "getpwuid", no_name)
    assert user_of(7, tmp_path) == str(os.geteuid())
    assert user_of(8, tmp_path) == ""


def test_child_is_a_descendant_until_it_is_waited_for_and_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.pid in descendants(os.getpid())
    assert is_alive(child.pid)
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and still listed
    assert not is_alive(child.pid)
    child.wait()
    assert child.pid not in descendants(os.getpid())
