# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every command line of the documents is taken by what it is for, or says why that is not asked.

Those of ``rmm-uvm`` are run, too, by `test_snippet_commands.py`. Of others the arguments are
parsed: what a benchmark does is for benchmarks, what a script of ``ci/`` does for CI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from rmm_uvm.planner.advice import reasons

from ...support import ci_usage
from ...support.commands import complaints
from ...support.snippets import DOCUMENTS, SNIPPETS

# What is no command, by document: a diagram, a formula, or what something prints.
PRINTED: Mapping[str, str] = {
    "README.md": r"\w+Warning: ",
    "architecture.md": r".*",
    "metrics.md": r"\(\d+, \d\)",
    "planner.md": r"\* +\d|\.\.\.$|The step that helps most|predicted\(card\) = ",
    "dask.md": r"distributed\.worker\.rmm_uvm - ERROR - ",
    "watching-a-cluster.md": r"\w+Warning: ",
}
# Of sed, of the shell, and of pytest, whose arguments every test of here is asked for.
FIRST_CHANGE = re.findall(
    r"^    ((?:sed -i|repository=|cd|python -P) ?.*)$",
    (ci_usage.REPOSITORY / "CONTRIBUTING.md").read_text(),
    re.MULTILINE,
)
RELOADS = reasons._THRESHOLD_HOW.partition("modprobe")
# By command without its comment, why nobody is asked whether it is one.
NOT_ASKED: Mapping[str, str] = {
    "python3 -m venv .venv && source .venv/bin/activate": "Python's own, as in prerequisites.sh",
    "".join(RELOADS[1:]).format(threshold=5): "root and NVIDIA's driver; the planner prints it",
    "cat /sys/module/nvidia_uvm/parameters/uvm_perf_prefetch_threshold": "NVIDIA's driver",
    **dict.fromkeys(
        FIRST_CHANGE,
        "a contributor's first change: see test_first_change.py",
    ),
    'echo "options nvidia_uvm uvm_perf_prefetch_threshold=5" > /etc/modprobe.d/nvidia-uvm.conf': (
        "root, and a file that outlives the test"
    ),
}
INLINE = re.compile(
    r"`((?:RMM_UVM_\w+=\S+ )?(?:ci/\w+\.sh|python benchmarks/|pip install "
    r"|rmm-uvm [a-z]+(?=[ `])(?! needs)|dask (?:scheduler|worker|cuda))[^`]*)`"
)


def without_comment(line: str) -> str:
    """Return a line without its ``#``, or the words beside a script of ``ci/``."""
    line = re.split(r"(?:^| )#", line)[0].rstrip()
    return re.split(r" {2,}", line)[0] if line.startswith("ci/") else line


def blocks() -> Iterator[tuple[str, str]]:
    """Yield each line of blocks of commands that is no printed one, with its document."""
    for one in SNIPPETS:
        if one.kind in ("", "bash") and not re.match(r">>> ", one.text):
            for line in re.sub(r" *\\\n *", " ", one.text).splitlines():
                if (asked := without_comment(line.strip())) and not is_printed(one.document, line):
                    yield one.document, asked


def is_printed(document: str, line: str) -> bool:
    return document in PRINTED and re.match(PRINTED[document], line) is not None


def inline() -> Iterator[tuple[str, str]]:
    """Yield each command within a sentence or table, with its document."""
    for path in DOCUMENTS:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for found in INLINE.findall(text):
            yield path.name, found.replace("\\|", "|")


LINES = list(dict.fromkeys([*blocks(), *inline()]))
ASKED = list(dict.fromkeys(line for _, line in LINES if line not in NOT_ASKED))
WRONG: Mapping[str, str] = {
    "python benchmarks/common/record.py --no-such": "unrecognized arguments: --no-such",
    "python benchmarks/common/record.py --only nothing": "invalid choice: 'nothing'",
    "python benchmarks/common/record.py --clock-allowance much": "invalid float value: 'much'",
    "python benchmarks/common/record.py --keep results/kept": "there is no folder results",
    "python benchmarks/no.py": "there is no",
    "python benchmarks/common/harness.py": "ended without parsing",
    "python benchmarks/planner/advice.py": "does not parse its arguments",
    "python -m nothing": "no check knows python",
    "dask nonsense --protocol x": "dask has no nonsense",
    "dask cuda nonsense": "cuda has no nonsense",
    "dask scheduler --protocol nonsense": "unknown address scheme 'nonsense'",
    "dask scheduler --protocols ucxuvm": "No such option",
    "dask worker nonsense://SCHEDULER:8786": "unknown address scheme 'nonsense'",
    "dask worker SCHEDULER --preload rmm_uvm.nothing": "No module named 'rmm_uvm.nothing'",
    "dask worker SCHEDULER --preload rmm_uvm.dask --maximum-poolsize 1GiB": "No such option",
    "dask worker SCHEDULER --preload rmm_uvm.dask --prefetch sometimes": "sometimes",
    "ci/fuzz.sh --no": "ci/fuzz.sh takes",
    "ci/fuzz.sh 60 nothing": "ci/fuzz.sh takes",
    "ci/test_gpu.sh [tests|nothing]": "ci/test_gpu.sh takes",
    "ci/test.sh all": "ci/test.sh takes [--all]",
    "ci/nothing.sh": "there is no ci/nothing.sh",
    "export UCX_TLSS=rc": "UCX takes no UCX_TLSS=rc",
    "export UCX_LOG_LEVEL=loud": "UCX takes no UCX_LOG_LEVEL=loud",
    "export RMM_UVM_MANAGED_LIMT=1GiB": "nobody reads the variable",
    "export RMM_UVM_DRIVER": "sets nothing",
    "RMM_UVM_MANAGED_LIMIT=much ci/test_gpu.sh": "RMM_UVM_MANAGED_LIMIT",
    "RMM_UVM_DRIVER=imagined ci/test.sh": "imagined",
    "pip install '.[mortgage,test]'": "no extra mortgage",
    "pip install './mortgage[cpus]'": "no extra cpus",
    "pip install 'rmm-cu13==26.8.*'": "pyproject.toml has rmm-cu13",
    "pip install --no-build-isolated .": "pip install has no --no-build-isolated",
    "pip uninstal rmm-uvm": "not checked: pip uninstal",
    "rmm-uvm doctor --fast": "rmm-uvm doctor has no --fast",
    "rmm-uvm watch": "rmm-uvm has no watch",
    "docker run image": "no check knows docker",
    "echo 'no end": "No closing quotation",
}


@pytest.fixture(scope="module")
def found() -> Mapping[str, str]:
    """What is wrong with any of them: asked together, since scripts share what they import."""
    return complaints([*ASKED, *WRONG])


@pytest.mark.parametrize("line", ASKED)
def test_line_is_taken_by_what_it_is_for(found: Mapping[str, str], line: str) -> None:
    assert found.get(line, "") == ""


@pytest.mark.parametrize("line", WRONG)
def test_line_that_is_wrong_is_refused(found: Mapping[str, str], line: str) -> None:
    assert WRONG[line] in found.get(line, "")


def test_what_is_not_asked_and_what_is_printed_is_in_a_document() -> None:
    assert set(NOT_ASKED) - {line for _, line in LINES} == set()
    texts = {one.document: "" for one in SNIPPETS}
    for one in SNIPPETS:
        texts[one.document] += f"{one.text}\n"
    assert [
        name for name in PRINTED if not re.search(rf"^(?:{PRINTED[name]})", texts[name], re.M)
    ] == []
    assert {"bash", ""} & {one.kind for one in SNIPPETS} == {"bash", ""}


@pytest.mark.parametrize("script", ci_usage.SCRIPTS)
def test_head_of_a_script_says_what_it_compares_its_argument_with(script: str) -> None:
    said = [ci_usage.literals(usage) for usage in ci_usage.usages(script)]
    assert ci_usage.compared(script) - {""} == set().union(*said)
