# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from top to bottom in a fresh kernel, on simulated devices."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

# The warnings of Jupyter's own libraries are no business of these tests.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]


@pytest.fixture
def kernel_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory for a kernel that sees no GPU and no settings of the user."""
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # cells for GPUs need a cap, see CONTRIBUTING
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    working = tmp_path / "work"
    working.mkdir()
    return working


def run(notebook: nbformat.NotebookNode, directory: Path) -> str:
    """Execute a notebook in place and return the text that it printed or showed."""
    client = NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(directory)}},
    )
    asyncio.run(client.async_execute())  # execute() would leave its event loop open
    return text_of(notebook)


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return the text of all outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs
    )


def shown_by(notebook: nbformat.NotebookNode, source: str) -> str:
    """Return the text of the outputs of the cell that begins so."""
    (cell,) = [cell for cell in notebook.cells if cell.source.startswith(source)]
    return text_of(nbformat.v4.new_notebook(cells=[cell]))


def without_outputs(name: str) -> nbformat.NotebookNode:
    """Return a notebook that shows only what it shows when it is run."""
    notebook = read(name)
    for cell in notebook.cells:
        cell.pop("outputs", None)
    return notebook


def read(name: str) -> nbformat.NotebookNode:
    (path,) = [path for path in NOTEBOOKS if path.name == name]
    return nbformat.read(path, as_version=4)


def rows_of(table: str, *names: str) -> dict[str, list[int]]:
    """Return the figures in the lines that begin with each name."""
    found: dict[str, list[int]] = {name: [] for name in names}
    for line in table.splitlines():
        for name in names:
            if line.startswith(name):
                words = line.removeprefix(name).split()
                found[name] += [int(word) for word in words if word.isdigit()]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_first_cell_and_kept_outputs_of_every_notebook_are_there(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)

    assert "simulated device" in notebook.cells[0].source.split("\n\n")[1]
    assert text_of(notebook)
    assert not [o for c in notebook.cells for o in c.get("outputs", []) if "ename" in o]


def test_every_notebook_is_run_from_top_to_bottom() -> None:
    """By a test of its own, which looks at what it says."""
    programs = re.findall(
        r"^def test_\w+_in_a_fresh_kernel_.+?(?=^def |^@)",
        Path(__file__).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    named = [name for program in programs for name in re.findall(r'"(\d\d_\w+\.ipynb)"', program)]
    assert sorted(named) == [path.name for path in NOTEBOOKS]


def test_quickstart_in_a_fresh_kernel_runs_out_of_memory_and_then_completes(
    kernel_directory: Path,
) -> None:
    text = run(read("01_quickstart.ipynb"), kernel_directory)

    assert "MemoryError: std::bad_alloc" in text
    assert "rmm_uvm on device 0: simulated device, 256.00 MiB\ninitial size" in text
    assert "4000000 rows" in text
    assert re.search(r"moved device to host +[1-9]\d* MiB", text)
    assert "'prefetch_calls': 0" in text


@pytest.mark.nightly
def test_mortgage_in_a_fresh_kernel_completes_where_the_fixed_pool_does_not(
    kernel_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(kernel_directory))

    text = run(read("02_mortgage.ipynb"), kernel_directory)

    assert re.search(r"cuda-pool +unsplit .* final_performance_delinquency ", text)
    assert re.search(r"cuda-pool +in 4 +completes", text)
    assert re.search(r"managed +unsplit +completes", text)
    assert "identical to plain pandas" in text
    assert text.count("rmm_uvm on device 0: simulated device, 96.00 MiB") == 2
    assert (kernel_directory / "memory.png").stat().st_size > 10_000


def test_watching_in_a_fresh_kernel_warns_under_the_cell_that_is_too_large(
    kernel_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(kernel_directory))
    notebook = without_outputs("03_watching.ipynb")

    text = run(notebook, kernel_directory)

    assert "Warning" not in shown_by(notebook, "m = uvm.monitor")
    too_large = shown_by(notebook, 'with rmm_uvm.stage("too large")')
    assert "OversubscriptionWarning: device 0: 384.00 MiB" in too_large
    assert "AmplificationWarning" in too_large
    assert shown_by(notebook, "%%uvm").startswith("uvm, ten_parts (simulated): ")
    assert "truncated: False" in text
    assert "'eviction': " in text
    assert (kernel_directory / "report.html").stat().st_size > 1_000_000


def test_dask_cluster_in_a_fresh_kernel_warns_the_client_and_reports_on_all_workers(
    kernel_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(kernel_directory))
    notebook = without_outputs("04_dask_cluster.ipynb")

    text = run(notebook, kernel_directory)

    assert "4 workers, each with this" in text
    assert "Warning" not in shown_by(notebook, "def workers():")
    too_much = shown_by(notebook, "with warnings.catch_warnings")
    assert "OversubscriptionWarning: on tcp://127.0.0.1:" in too_much
    assert "'160 MiB', '32 MiB', '32 MiB', '32 MiB'" in too_much
    evicted = [int(line.split()[4]) for line in shown_by(notebook, "figures()").splitlines()[2:]]
    assert evicted[0] > 0
    assert evicted[1:] == [0, 0, 0]
    assert "rmm_uvm: cluster of 4 workers" in shown_by(notebook, "report = ")
    assert (kernel_directory / "cluster.html").stat().st_size > 100_000
    resources = shown_by(notebook, "def resource():").splitlines()
    assert resources == [str(["CudaMemoryResource"] * 2), str(["UvmResourceAdaptor"] * 2)]


def test_planner_in_a_fresh_kernel_answers_for_every_card(kernel_directory: Path) -> None:
    notebook = without_outputs("05_planner.ipynb")

    text = run(notebook, kernel_directory)

    assert "0 bytes were evicted" in text
    told = shown_by(notebook, "cards = ")
    assert told.startswith("Simulated on h200-pcie5. Nothing of this ran on a GPU.")
    assert told.count("The whole input: ") == 3
    assert "peak 448.00 MiB" in told
    assert "Simulated on gtx1080ti-pcie3 (published only)." in shown_by(notebook, "old = ")
    assert "'host_sharers': 4" in shown_by(notebook, "four = ")


def test_past_the_edge_in_a_fresh_kernel_moves_less_and_drops_what_is_dead(
    kernel_directory: Path,
) -> None:
    notebook = without_outputs("06_past_the_edge.ipynb")

    text = run(notebook, kernel_directory)

    names = ["MiB to the host", "MiB to the device", "migrating, ms"]
    taken = rows_of(shown_by(notebook, "def run("), *names)
    assert all(budget < driver for driver, budget in taken.values())
    assert "of a budget of 186.00 MiB, at most 186.00 MiB" in text
    steps = rows_of(shown_by(notebook, 'device = rmm_uvm.simulated_device("64MiB")'), "F is made")
    assert steps["F is made"][-2:] == [8, 14]  # D dropped; A and the half of C copied
    policies = rows_of(
        shown_by(notebook, "for policy, reason"), "the kernel driver", "lru", "repeat"
    )
    to_host = {name: figures[0] for name, figures in policies.items()}
    assert to_host["repeat"] < to_host["lru"] < to_host["the kernel driver"]
    assert "ndarray is in host memory" in text
    assert re.search(r"budget +182.40 MiB, .*\n +evicted [\d.]+ MiB, dropped [\d.]+ MiB dead", text)
    assert "Warning" not in text


@pytest.mark.nightly
def test_training_in_a_fresh_kernel_has_the_same_losses_and_knows_the_order(
    kernel_directory: Path,
) -> None:
    notebook = without_outputs("07_training.ipynb")

    text = run(notebook, kernel_directory)

    assert "0 B to the device, 0 B to the host" in shown_by(notebook, "def run(")
    assert text.count("losses as where it fits: True") == 3
    speedup = re.search(r"known order: ([\d.]+) times as fast as driver prefetch", text)
    assert speedup is not None
    assert float(speedup[1]) > 1.5
    assert "Warning" not in text


@pytest.mark.nightly
def test_recommender_in_a_fresh_kernel_hits_more_once_hot_rows_are_together(
    kernel_directory: Path,
) -> None:
    notebook = without_outputs("08_recommender.ipynb")

    text = run(notebook, kernel_directory)

    spread = shown_by(notebook, 'device = rmm_uvm.simulated_device("64MiB")')
    together = shown_by(notebook, "rows.zero_grad()")
    hits = [float(re.findall(r"hits ([0-9.]+)%", shown)[0]) for shown in (spread, together)]
    assert hits[1] > 2 * hits[0]
    assert "same numbers: True" in together
    first, last = re.findall(r"loss ([0-9.]+), then ([0-9.]+)", spread)[0]
    assert float(last) < float(first)
    moved = rows_of(shown_by(notebook, "def moved_by("), "plain managed memory", "ours")
    assert moved["plain managed memory"][-1] > 1000
    assert moved["ours"] == [0, 0, 0]
    assert "theirs with our rows: True" in text
    assert "ours with theirs:     True" in text
    assert "OutOfRangeError: index 131072 is out of range" in text
    assert "is not a managed pool of rmm_uvm" in text
    assert "Warning" not in text


def test_neighbours_in_a_fresh_kernel_take_what_leaves_and_give_it_back(
    kernel_directory: Path,
) -> None:
    notebook = without_outputs("09_neighbours.ipynb")

    text = run(notebook, kernel_directory)

    taken = rows_of(shown_by(notebook, "def kernel("), "MiB to the host", "MiB to GPU 1", "ms")
    alone, beside, limited = taken["ms"]
    assert 4 * beside < alone
    assert beside < limited < alone
    assert taken["MiB to GPU 1"][0] == 0
    assert taken["MiB to the host"][1] < taken["MiB to the host"][2] < taken["MiB to the host"][0]
    assert "finds none: GPUs 0 and 1 have no peer access" in text
    assert "as without: True" in text
    found = re.findall(r"GPU 1: (\d+) MiB offered, (\d+) MiB held", text)
    (_, before), (offered, after) = [tuple(map(int, each)) for each in found]
    assert after <= offered < before
    assert "all numbers are there: True" in text


def test_notebook_with_a_failing_cell_raises(kernel_directory: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import rmm_uvm; rmm_uvm.reinitialize('2 apples')")]
    )

    with pytest.raises(CellExecutionError, match="initial_pool_size"):
        run(notebook, kernel_directory)
