# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every result file, and the command that makes it anew; `record.py` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FILE = "{file}"  # in a command: where the result goes
JSON = ("--json", FILE)
LIMIT_SECONDS = 3600.0


@dataclass(frozen=True)
class Benchmark:
    """One result file.

    Parameters
    ----------
    result : str
        Its path below ``results/``, without ``.json``.
    command : tuple of str
        A script below benchmarks/ (or, with a slash in front, of the repository) and its arguments.
    gpus : int
        How many GPUs it needs.
    clocked : bool
        Whether its figures are times: they differ from run to run. Otherwise all have to be equal.
    clocked_parts : tuple of str
        Of one that is not: top-level parts that are times all the same.
    settings : tuple of (str, str)
        Environment variables.
    limit_seconds : float
        How long it may take.
    long : bool
        Whether it runs only with ``--long``, or where it is named.
    """

    result: str
    command: tuple[str, ...]
    gpus: int = 0
    clocked: bool = False
    clocked_parts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    limit_seconds: float = LIMIT_SECONDS
    long: bool = False


class NotRun(NamedTuple):
    """A result that is not made again: what it is, and why that is so."""

    what: str
    why: str


def _simulated(
    result: str, script: str, *words: str, clocked_parts: tuple[str, ...] = ()
) -> Benchmark:
    return Benchmark(result, (f"{script}.py", *(words or JSON)), clocked_parts=clocked_parts)


def _timed(result: str, script: str, *words: str) -> Benchmark:
    return Benchmark(result, (f"{script}.py", *(words or JSON)), clocked=True)


def _gpu(result: str, script: str, *words: str, gpus: int = 1) -> Benchmark:
    return Benchmark(result, (f"{script}.py", *words, *JSON), gpus, clocked=True)


_PUBLISHED = (
    *("uvm_smart", "gtx1080ti_nvprof", "uvm_discard", "specasync_sparse", "gcn_epochs"),
    *("nvshare_tenants", "gtc_batch_sizes", "gpu_ext_pages", "training_policies"),
    "g10_networks",
)

BENCHMARKS = (
    *(Benchmark(f"published/{name}", (f"published/{name}.py", *JSON)) for name in _PUBLISHED),
    _simulated("model_calibration", "planner/model_calibration"),
    _simulated("residency_discards", "residency/discards"),
    _simulated("residency_emulation", "residency/emulation"),
    _simulated("advice", "planner/advice", FILE),
    _simulated("neighbors_consolidation", "neighbors/consolidation"),
    _simulated("residency_policies", "residency/policies"),
    _simulated("torch_policies", "training/policies"),
    Benchmark("ahead_adapts_simulated", ("residency/ahead_adapts.py", *JSON)),
    _simulated("pool_placement", "pool/placement", clocked_parts=("speed", "verdicts")),
    _timed("model_speed", "planner/model_speed"),
    _timed("replay_speed", "planner/replay_speed"),
    _timed("trace_cost", "watching/trace_cost"),
    _timed("sampler_cost", "watching/sampler_cost"),
    _timed("ledger_cost", "pool/ledger_cost"),
    _timed("growth", "pool/growth"),
    _timed("report_size", "watching/report_size", FILE),
    Benchmark("endurance", ("endurance/allocations.py", *JSON), clocked=True, long=True),
    Benchmark("cpp_allocate_free", ("/ci/test_cpp.sh", "benchmark", FILE), clocked=True),
    # ci/test_gpu.sh benchmarks
    _gpu("driver_facts", "driver/driver_facts"),
    _gpu("allocate_free", "pool/allocate_free"),
    _gpu("cudf_pass_20m", "pool/cudf_pass", "--rows", "20000000"),
    _gpu(
        *("cudf_pass_100m", "pool/cudf_pass", "--rows", "100000000", "--pool", "7.5GiB"),
        *("--steady-bounds", "1.01", "1.01"),
    ),
    Benchmark(
        "cudf_pass_20m_without_counters",
        (
            *("pool/cudf_pass.py", "--rows", "20000000", "--only-steady"),
            *("--steady-bounds", "1.05", "1.05", *JSON),
        ),
        gpus=1,
        clocked=True,
        settings=(("RMM_UVM_COUNTERS", "off"),),
    ),
    _gpu("cudf_prefetch", "pool/cudf_prefetch"),
    _gpu("recycled_memory", "driver/recycled_memory"),
    _gpu("mortgage_pipeline", "mortgage/pipeline"),
    _gpu("watching_exactness", "watching/exactness"),
    _gpu("watching_cost", "watching/cost"),
    _gpu("attach_cost", "watching/attach_cost"),
    _gpu("lines_cost", "watching/lines_cost", "--gpu"),
    _gpu("shadow_proof", "mortgage/shadow_proof"),
    _gpu("deferred_discards", "driver/deferred_discards"),
    # ci/test_gpu.sh residency
    _gpu(
        *("past_the_edge_cudf", "past_the_edge/run", "--rounds", "6"),
        *("--sides", "resident,default,fault-driven,by-hand,by-hand-buffered"),
    ),
    _gpu(
        *("past_the_edge_cudf_three_budgets", "past_the_edge/run", "--rounds", "6"),
        *("--factor", "3", "--sides", "resident,default,by-hand,by-hand-buffered"),
    ),
    _gpu(
        *("past_the_edge_cudf_prefetched", "past_the_edge/run", "--rounds", "6"),
        *("--sides", "default,fault-driven-prefetched"),
    ),
    *(
        _gpu(
            f"past_the_edge_{program.replace('-', '_')}",
            "past_the_edge/run",
            *("--program", program, "--sides", *words.split()),
        )
        for program, words in (
            ("merge-and-sort", "resident,default,fault-driven --factor 2.3 --rounds 6"),
            ("mortgage", "resident,default,fault-driven --rounds 6"),
            ("training", "resident,announced,fault-driven --rounds 6"),
            ("cudf-pandas", "resident,default --budget 1GiB --rounds 6"),
            ("pds-h-eager", "default,polars-streaming --budget 4467782008 --rounds 4"),
            ("pds-h", "resident,default --budget 1GiB --rounds 6"),
            ("xgboost", "resident,default --budget 1GiB --pieces 12 --rounds 6"),
            ("cupy", "resident,default --budget 4GiB --rounds 6"),
            ("swin-b", "resident,default --budget 6GiB --pieces 1 --rounds 6 --sample-ms 20"),
            ("graphsage", "resident,default --budget 4GiB --pieces 1 --rounds 5"),
        )
    ),
    _gpu(
        *("past_the_edge_pds_h_eager_three_budgets", "past_the_edge/run", "--factor", "3"),
        *("--program", "pds-h-eager", "--budget", "2233891004", "--rounds", "4"),
        *("--sides", "default,polars-streaming"),
    ),
    _gpu(
        *("past_the_edge_mortgage_two_budgets", "past_the_edge/run", "--factor", "2"),
        *("--program", "mortgage", "--rounds", "6", "--sides", "resident,default"),
    ),
    _gpu(
        *("past_the_edge_cudf_alternatives", "past_the_edge/run", "--rounds", "4"),
        *("--sides", "resident,cudf-spilling,dask-spilling,polars-streaming,pinned-behind"),
    ),
    _gpu("past_the_edge_bound", "past_the_edge/bound"),
    _gpu("seeing_cost", "pool/seeing_cost"),
    _gpu("residency_fits", "residency/fits"),
    _gpu("undiscarded", "residency/undiscarded"),
    _gpu("migration_threads", "driver/migration_threads"),
    # ci/test_gpu.sh training
    _gpu("torch_copies", "training/copies"),
    _gpu("torch_fits", "training/fits"),
    _gpu("where_time_goes", "training/where_time_goes"),
    # ci/test_gpu.sh endurance
    _gpu("endurance_gpu", "endurance/gpu"),
    Benchmark(
        "endurance_gpu_trimmed",
        ("endurance/gpu.py", *JSON),
        gpus=1,
        clocked=True,
        settings=(("MALLOC_TRIM_THRESHOLD_", "131072"),),
    ),
    # ci/test_gpu.sh cluster
    *(
        _gpu(result, script, gpus=2)
        for result, script in (
            *(("message_size", "cluster/message_size"), ("ipc_copy", "cluster/ipc_copy")),
            *(("dask_results", "cluster/results"), ("dask_shuffle", "cluster/shuffle")),
            ("ipc_exhaustion", "cluster/ipc_exhaustion"),
            *(("worker_killed", "cluster/worker_killed"), ("dask_pause", "cluster/pause")),
            ("mortgage_cluster", "mortgage/cluster"),
        )
    ),
    # ci/test_gpu.sh neighbors
    *(_gpu(f"neighbors_{name}", f"neighbors/{name}", gpus=2) for name in ("paths", "interference")),
    # ci/test_gpu.sh others
    _gpu("tpch", "tpch/compare", "--libraries", "pandas-pdsh", "pdsh"),
    *(
        _gpu(f"libraries_{library}", "past_the_edge/libraries", "--library", library)
        for library in ("cuml", "cugraph")
    ),
    _gpu(
        "dask_scripts",
        "cluster/scripts",
        "--runs",
        "3",
        "--rounds",
        "1",
        "--time-limit",
        "130",
        gpus=2,
    ),
)

_PAST = "of a version or a setting that is no more: nothing measured now can be compared with it"
_DATA = "needs real mortgage data, which is not here; cuDF's log of each version is another"
_NO_SPEED = "has no figure that is compared: what it finds it judges itself, and that fails there"

NOT_RUN = {
    "suites": NotRun(
        "other projects' tests under our pool: suites/compare.py, with checkouts of theirs",
        _NO_SPEED,
    ),
    "fuzzing": NotRun("executions and findings of each reader: ci/fuzz.sh 3600", _NO_SPEED),
    "fuzzing_wire": NotRun("the same of what a peer of ucxuvm sends: ci/fuzz.sh 400", _NO_SPEED),
    "memcheck": NotRun("what Compute Sanitizer said: ci/sanitize_gpu.sh runs it", _NO_SPEED),
    "memcheck_frames": NotRun(
        "tensors that Compute Sanitizer keeps, with and without backtraces of the host",
        "of that tool, not of this package: the choice in ci/sanitize_gpu.sh was made by it",
    ),
    "instruction_counts": NotRun(
        "instructions of the C++ hot paths",
        "ci/check_instructions.sh counts and judges them: CI runs it, and says where it cannot",
    ),
    "machine_h200": NotRun(
        "a machine's profile: `rmm-uvm doctor --measure` makes one",
        "of that machine, whose constants the simulator has: another is no regression of this one",
    ),
    "driver_facts_h100": NotRun(
        "driver/driver_facts.py on an H100, with `host_mappings`, which the other has not yet",
        "facts of another card beside those of the record, which an H200 answered",
    ),
    "driver_facts_read_in_place": NotRun(
        "driver/driver_facts.py --only read_in_place on an H100",
        "driver/driver_facts.py answers all questions in one file; the committed one is an H200's",
    ),
    "driver_facts_kept_copies": NotRun(
        "driver/driver_facts.py --only kept_copies on an H100",
        "driver/driver_facts.py answers all questions in one file; the committed one is an H200's",
    ),
    "migration_threads_h200": NotRun(
        "driver/migration_threads.py, of memory that is one mapping, on an H200",
        "of memory that was mapped whole, which no resource hands out now; the simulator has it",
    ),
    "model_profile": NotRun(
        "shares of functions: planner/model_profile.py, for those who make the model faster",
        "a share may rise as all fall: ci/check_instructions.sh judges counts, "
        "planner/model_speed.py time",
    ),
    "mortgage_allocations_parts1": NotRun("what cuDF allocates: mortgage/allocations.py", _DATA),
    "mortgage_allocations_parts4": NotRun("what cuDF allocates: mortgage/allocations.py", _DATA),
    "neighbors_interference_before": NotRun(
        "neighbors/interference.py, of fewer and longer rounds", _PAST
    ),
}
"""Results that no command of here makes again."""
