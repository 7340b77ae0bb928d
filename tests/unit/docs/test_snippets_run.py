# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in the documents is run on simulated devices, and does what is said of it.

A test names the block that it runs by document and first line, and gives it the names that a
reader would have: frames, a client, `train`. What needs a GPU is named in `NEEDS_A_GPU`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import rmm
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm import AmplificationWarning, OversubscriptionWarning
from rmm_uvm_mortgage.generate import GeneratorConfig, generate

from ...other_process import other_process
from ...support.fake_torch_cuda import FakeTorchCuda
from ...support.snippets import CODE, DOCUMENTS, REPOSITORY, Snippet, indented

Place = tuple[str, str]
MERGE = 'sales.merge(customers, on="customer")'
RMM_FOR_NUMBA = (
    'rmm_uvm.reinitialize(libraries=("cupy", "numba"))  # before Numba\'s first array or kernel'
)
MONITOR = "with rmm_uvm.monitor() as m:"
MIB = 1 << 20
CUDA_CLUSTER = 'cluster = LocalCUDACluster(protocol="ucxuvm", preload=["rmm_uvm.dask"])'
# What it says without a GPU; `tests/gpu/test_dask_cluster.py` makes such clusters.
NEEDS_A_GPU: Mapping[Place, str] = {
    ("communication.md", CUDA_CLUSTER): "Devices in CUDA_VISIBLE_DEVICES must be",
}
RUN: list[Place] = []
# Dask's own warnings, and those of documents whose data do not fit.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]


def block(place: Place) -> Snippet:
    """Return the block that begins so."""
    (found,) = [one for one in CODE if one.place == place]
    return found


def runs(*place: str) -> Callable[[Any], Any]:
    """Mark a test that runs a block, which comes as `snippet`."""
    document, first = place
    RUN.append((document, first))
    return pytest.mark.parametrize("snippet", [block((document, first))], ids=[document])


def execute(text: str, **given: Any) -> dict[str, Any]:
    """Run a block in a namespace of its own, in which names are given; return the namespace."""
    names = {"__name__": "__main__", **given}
    exec(compile(text, "snippet", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)


class Frame:
    """Stands for a frame of cuDF: `merge` allocates a result, in the memory that is current."""

    def __init__(self, nbytes: int = 40 * MIB) -> None:
        self.buffer = rmm.DeviceBuffer(size=nbytes, mr=rmm.mr.get_per_device_resource(0))

    def merge(self, other: Frame, *, on: str) -> Frame:
        assert on == "customer"
        return Frame(self.buffer.size + other.buffer.size)


@contextlib.contextmanager
def fixed_pool() -> Iterator[None]:
    """Have a pool of all of a device's memory current, as RMM makes them."""
    device = rmm_uvm.simulated_device("64MiB")
    cuda = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    rmm.mr.set_per_device_resource(0, rmm.mr.PoolMemoryResource(cuda, 64 * MIB, 64 * MIB))
    yield
    rmm_uvm.restore()


@runs("README.md", f"{MERGE}  # MemoryError: std::bad_alloc: out_of_memory")
def test_merge_runs_out_of_memory_and_completes_after_one_line(snippet: Snippet) -> None:
    before, imported, after = snippet.text.partition("\nimport rmm_uvm\n")
    message = re.findall(r"# MemoryError: (.+)", before)[0]
    with fixed_pool():
        with pytest.raises(MemoryError, match=re.escape(message)):
            execute(before, sales=Frame(), customers=Frame(MIB))
        execute(imported + after, sales=Frame(), customers=Frame(MIB))
        assert rmm_uvm.pool.install.current_installation() is not None


@runs("README.md", f"{MONITOR}  # around anything; works with RMM's own pools, and with none")
def test_monitor_tells_of_the_stage(
    snippet: Snippet, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with rmm_uvm.reinitialize(monitor=False, libraries=()):
        names = execute(snippet.text, rmm_uvm=rmm_uvm, sales=Frame(), customers=Frame(MIB))
        assert "merge" in capsys.readouterr().out
        calls = re.findall(
            r"m\.[\w.]+\([^)]*\)(?:\.\w+\([^)]*\))?", snippet.text.partition("# also")[2]
        )
        assert len(calls) == 3
        for call in calls:
            eval(call, names)
        names.clear()
    assert (tmp_path / "report.html").stat().st_size > 100_000


@runs(
    "troubleshooting.md",
    'warnings.filterwarnings("ignore", category=rmm_uvm.OversubscriptionWarning)',
)
def test_filters_of_warnings_ignore_one_and_make_an_error_of_another(snippet: Snippet) -> None:
    with warnings.catch_warnings():
        execute(snippet.text)
        warnings.warn("ignored", OversubscriptionWarning, stacklevel=1)
        with pytest.raises(AmplificationWarning):
            warnings.warn("an error", AmplificationWarning, stacklevel=1)


@runs("polars.md", "config = MemoryResourceConfig(")
def test_polars_engine_is_given_a_pool_of_the_sizes(
    snippet: Snippet, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("cudf_polars.utils.config")
    # As there, of which test_mr.py has what makes the resource.
    module.MemoryResourceConfig = types.SimpleNamespace  # type: ignore[attr-defined]
    for name in ("cudf_polars", "cudf_polars.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = execute(snippet.text)
    config = names["config"]
    assert names["engine"].config["memory_resource_config"] is config
    mr = pool_by_name(config.qualname, config.options)
    assert mr.upstream_mr.pool_size() == 40 << 30


@runs("numba.md", RMM_FOR_NUMBA)
def test_numba_is_wired_with_the_pool(snippet: Snippet) -> None:
    execute(snippet.text)
    installed = rmm_uvm.pool.install.current_installation()
    assert installed is not None
    assert {"cupy", "numba"} <= {wiring.library for wiring in installed.wirings}
    rmm_uvm.restore()


@runs("ray.md", "@ray.remote(num_gpus=0.5, max_restarts=3)")
def test_actor_of_ray_has_the_pool_when_it_was_made(
    snippet: Snippet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stands for Ray, whose actor is made in a process that has its GPU by then.
    ray = types.ModuleType("ray")
    asked: list[dict[str, Any]] = []

    def remote(**options: Any) -> Callable[[type], type]:
        asked.append(options)
        return lambda actor: actor

    ray.remote = remote  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    worker = execute(snippet.text)["Worker"]
    assert [options["num_gpus"] for options in asked] == [0.5]
    for _ in range(2):  # a restart makes it again
        actor = worker()
        assert actor.memory.managed_mr is rmm.mr.get_per_device_resource(0)
        assert actor.memory.arguments["host_sharers"] == 2
    rmm_uvm.restore()


def pool_by_name(qualname: str, options: Mapping[str, str]) -> Any:
    """Make a pool as cudf-polars does, on a device that is large enough."""
    kind = functools.reduce(getattr, qualname.split(".")[1:], rmm_uvm)
    return kind(driver="simulated:128GiB", **options)  # type: ignore[operator]


# Stands for CuPy: of an array there are only its bytes.
CUPY = """
from types import SimpleNamespace
def asarray(opened):
    content = ctypes.string_at(opened.ptr, opened.nbytes)
    return SimpleNamespace(copy=lambda: content.hex())
sys.modules["cupy"] = SimpleNamespace(asarray=asarray)
"""


@runs("ipc.md", "with rmm_uvm.ipc.open(handle) as opened:  # after the exporter's stream")
def test_another_process_reads_what_was_exported(snippet: Snippet) -> None:
    with other_process() as exporter, other_process() as reader:
        exporter.ask("device = rmm_uvm.simulated_device('64MiB', backing=True)")
        exporter.ask("pool = rmm_uvm.ipc_pool('4MiB', driver=device)")
        exporter.ask("buffer = rmm.DeviceBuffer(size=6, mr=pool)")
        exporter.ask("ctypes.memmove(buffer.ptr, b'frames', 6)")
        handle = bytes.fromhex(exporter.ask("pool.export(buffer)"))
        reader.ask(CUPY)
        reader.ask(f"handle = {handle!r}")
        reader.ask(snippet.text)
        assert reader.ask("(array, opened.closed)") == [b"frames".hex(), True]
        assert exporter.ask("pool.leases()") == []


# Training


def train() -> torch.nn.Module:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        optimizer.step()
    return model


@runs("budget.md", "mr = rmm_uvm.managed_pool(")
def test_trimming_says_what_was_given_back(
    snippet: Snippet, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(snippet.text)
    told = capsys.readouterr().out.strip()
    assert told == "32.00 MiB given back, and 84.00 MiB discarded beside what is in use"
    assert told in snippet.text


@runs("budget.md", 'mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")')
def test_sleeping_says_what_left_and_waking_what_came(
    snippet: Snippet, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(snippet.text)
    assert capsys.readouterr().out.split() == ["8", "0", "8"]


@runs("training-policies.md", "model = torch.nn.Linear(1024, 1024)")
def test_training_on_a_simulated_device_prints_what_it_moved(
    snippet: Snippet, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(snippet.text)
    assert re.match(r"time .+\nmoved .+ MiB to the device", capsys.readouterr().out)


@runs("training.md", "with rmm_uvm.torch.managed(device_budget=0.9) as memory:")
def test_training_within_a_budget_prints_statistics(
    snippet: Snippet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choose = rmm_uvm.drivers.choose_driver
    monkeypatch.setattr(
        "rmm_uvm.torch.memory.choose_driver", lambda device, _: choose(device, "simulated:64MiB")
    )
    FakeTorchCuda().install(monkeypatch)
    trained = []
    execute(snippet.text, train=lambda: trained.append(train()))
    assert len(trained) == 1
    assert "budget_bytes" in capsys.readouterr().out
    assert rmm_uvm.torch.installed_memory(0) is None


@runs("training.md", 'rmm_uvm.reinitialize(device_budget=0.9, libraries=("torch",))')
def test_training_through_rmm_is_announced(snippet: Snippet) -> None:
    trained = []
    execute(snippet.text, train=lambda: trained.append(train()))
    assert len(trained) == 1
    installation = rmm_uvm.pool.install.current_installation()
    assert installation is not None
    assert re.search(r"^torch +off .+ runs no kernels$", str(installation), re.MULTILINE)


# Dask: scripts, run one after the other, of which workers are processes of their own

MAIN = 'if __name__ == "__main__":'
CLUSTERS = {
    "README.md": f"{MAIN}  # workers are new processes, which import the script again",
    "dask.md": MAIN,
    "watching-a-cluster.md": MAIN,
}
UVM_PLUGIN = 'client.register_plugin(rmm_uvm.dask.UvmPlugin(maximum_pool_size="200GiB"))'
REINITIALIZE = 'client.run(rmm_uvm.reinitialize, maximum_pool_size="64GiB")'
MORTGAGE = 'with ClusterRun(client, PipelineConfig(Path("/data/mortgage"))) as run:'
BROKEN = ("", "a script that fails")
# After a block: what workers say of their pools.
POOLS = "print(*client.run(lambda: str(rmm_uvm.pool.install.current_installation())).values())"
# One script for all blocks of a document, as they follow one another.
CLIENTS = {
    ("dask.md", UVM_PLUGIN): POOLS,
    ("mortgage-on-a-cluster.md", REINITIALIZE): POOLS,
    ("mortgage-on-a-cluster.md", MORTGAGE): "print(f'workers: {len(report.workers)}')",
}
WITH_CLIENT = """\
import rmm_uvm
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1) as cluster, Client(cluster) as client:
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="module")
def ran(folder: Path) -> Mapping[Place, Mapping[str, str]]:
    """Run all that needs a cluster."""
    data = GeneratorConfig(loans_per_quarter=100, quarters=1, months=12, seed=7)
    generate(folder / "data", data)
    texts = {place: block(place).text for place in CLUSTERS.items()}
    for place, then in CLIENTS.items():
        text = block(place).text.replace("/data/mortgage", str(folder / "data"))
        script = texts.setdefault((place[0], WITH_CLIENT), WITH_CLIENT)
        texts[place[0], WITH_CLIENT] = script + textwrap.indent(f"{text}\n{then}\n", " " * 8)
    texts[BROKEN] = "import nothing_of_this_name"
    scripts = [folder / f"script_{number}.py" for number in range(len(texts))]
    for script, text in zip(scripts, texts.values(), strict=True):
        script.write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", REPOSITORY / "tests/support/run_scripts.py", *map(str, scripts)],
        # A server from which workers are forked, with Dask imported: half of the time.
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            "RMM_UVM_DRIVER": "simulated:256GiB",
            "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
            "DASK_TEMPORARY_DIRECTORY": str(folder),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(texts, found, strict=True))


@pytest.mark.parametrize("document", CLUSTERS)
def test_cluster_in_one_line_starts_and_ends(
    ran: Mapping[Place, Mapping[str, str]], folder: Path, document: str
) -> None:
    result = ran[document, CLUSTERS[document]]
    assert not result["error"]
    if document == "watching-a-cluster.md":
        assert re.fullmatch(r"http://[\d.:]+/rmm-uvm\n", result["printed"])
        assert (folder / "cluster.html").stat().st_size > 100_000


def test_plugin_gives_workers_pools(ran: Mapping[Place, Mapping[str, str]]) -> None:
    result = ran["dask.md", WITH_CLIENT]
    assert not result["error"]
    assert re.search(r"^maximum size +200.00 GiB +as asked$", result["printed"], re.MULTILINE)


def test_workers_are_given_pools_and_the_mortgage_pipeline_runs_on_them(
    ran: Mapping[Place, Mapping[str, str]], folder: Path
) -> None:
    result = ran["mortgage-on-a-cluster.md", WITH_CLIENT]
    assert not result["error"]
    printed = result["printed"]
    assert re.search(r"^maximum size +64.00 GiB +as asked$", printed, re.MULTILINE)
    assert printed.endswith("\nworkers: 1\n")
    assert (folder / "features.arrow").stat().st_size > 1000


def test_script_that_fails_is_told(ran: Mapping[Place, Mapping[str, str]]) -> None:
    assert "No module named 'nothing_of_this_name'" in ran[BROKEN]["error"]


# What is not run


@pytest.mark.parametrize("place", NEEDS_A_GPU, ids=lambda place: place[0])
def test_block_that_needs_a_gpu_does(place: Place) -> None:
    with pytest.raises(ValueError, match=NEEDS_A_GPU[place]):
        execute(block(place).text)


def test_every_block_is_run_or_needs_a_gpu() -> None:
    clusters: list[Place] = [*CLUSTERS.items(), *CLIENTS]
    assert sorted([*RUN, *clusters, *NEEDS_A_GPU]) == sorted(one.place for one in CODE)


def test_python_is_fenced() -> None:
    """For what is only indented would not be found."""
    texts = {path.name: path.read_text() for path in DOCUMENTS}
    assert {name for name, text in texts.items() if any(map(is_python, indented(text)))} == set()


def is_python(text: str) -> bool:
    """Return whether text is a program, and not a command or a message that reads like one."""
    try:
        found = {type(node) for node in ast.walk(ast.parse(text))}
    except SyntaxError:
        return False
    return bool(found & {ast.Call, ast.Import, ast.ImportFrom, ast.With, ast.Assign})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import rmm_uvm\n", True),
        ("rmm_uvm.restore()  # undo\n", True),
        ("ci/test.sh  # all\n", False),
    ],
)
def test_program_is_told_from_a_command(text: str, expected: bool) -> None:
    (found,) = indented("\n".join(f"    {line}" for line in ["", *text.splitlines()]) + "\n")
    assert is_python(found) is expected
