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
    more : tuple of tuples of str
        Further commands, run one after the other, which add to the same file.
    limit_seconds : float
        How long all of its commands together may take.
    long : bool
        Whether it runs only with ``--long``, or where it is named.
    """

    result: str
    command: tuple[str, ...]
    gpus: int = 0
    clocked: bool = False
    clocked_parts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    more: tuple[tuple[str, ...], ...] = ()
    limit_seconds: float = LIMIT_SECONDS
    long: bool = False

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """All that make the file, in order."""
        return (self.command, *self.more)


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
)

# Rows are of half the full batch or less, what fits is of the full one, losses have a call of their
# own. What fits comes first: with it the verdicts on rows are those of the whole file.
_TRAINING = (
    ("--models", "gpt2,gpt2-medium,bert", "--dtypes", "bf16", "--fits"),
    ("--models", "resnet50,resnet101,resnet152", "--fits"),
    ("--models", "gpt2,gpt2-medium,bert", "--batch-fraction", "0.5"),
    ("--models", "whisper-small", "--batch-fraction", "0.25"),
    (
        *("--models", "alexnet,resnet50,resnet101,resnet152,densenet121,lstm,unet3d"),
        *("--batch-fraction", "0.125"),
    ),
    ("--losses-steps", "50"),
)
_TRAINING_CALLS = tuple(("training/past_the_edge.py", *words, *JSON) for words in _TRAINING)

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
    _gpu("shadow_proof", "mortgage/shadow_proof"),
    _gpu("deferred_discards", "driver/deferred_discards"),
    # ci/test_gpu.sh residency
    _gpu("residency", "residency/past_the_edge", "--scale", "12"),
    _gpu(
        *("past_the_edge_cudf", "past_the_edge/run", "--rounds", "6"),
        *("--sides", "resident,default,fault-driven,fault-driven-prefetched"),
    ),
    _gpu("residency_mortgage", "residency/mortgage"),
    _gpu("residency_mortgage_8m", "residency/mortgage", "--rows", "8000000"),
    _gpu("residency_fits", "residency/fits"),
    _gpu("residency_launches", "residency/launches"),
    _gpu("residency_discards_gpu", "residency/discards_gpu"),
    _gpu("undiscarded", "residency/undiscarded"),
    _gpu("migration_threads", "driver/migration_threads"),
    _gpu("advice_on_gpus", "planner/advice_on_gpus"),
    # ci/test_gpu.sh training
    _gpu("torch_copies", "training/copies"),
    _gpu("torch_embedding", "training/embedding"),
    _gpu("torch_caching", "training/caching"),
    Benchmark(
        *("torch_training", _TRAINING_CALLS[0]),
        gpus=1,
        clocked=True,
        more=_TRAINING_CALLS[1:],
        limit_seconds=4 * 3600,
    ),
    _gpu(
        "torch_save_on_cpu", "training/save_on_cpu", "--models", "whisper-small", "--dtypes", "bf16"
    ),
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
    *(
        _gpu(f"neighbors_{name}", f"neighbors/{name}", gpus=2)
        for name in ("paths", "interference", "loops")
    ),
    # ci/test_gpu.sh others
    _gpu("tpch", "tpch/compare", "--libraries", "pandas-pdsh", "pdsh"),
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
    "fuzzing": NotRun("executions and findings of each reader: ci/fuzz.sh 3600", _NO_SPEED),
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
    "residency_launches_libcuda": NotRun("residency/launches.py, moving by libcuda only", _PAST),
    "residency_mortgage_before": NotRun("residency/mortgage.py, before room was made early", _PAST),
    "torch_copies_tight": NotRun("steps of copies past a tight budget, at three commits", _PAST),
    "torch_training_full_batch": NotRun(
        "training/past_the_edge.py at the full batch, 24 steps a run",
        "calls on hosts with and without other work; the same at half of it is in torch_training",
    ),
    "torch_training_full_batch_h100": NotRun(
        "the same of whisper-small on an H100",
        "a figure of another card beside the record's; torch_training has the model's own",
    ),
    "torch_training_full_batch_whisper": NotRun(
        "the same of whisper-small bf16, three times at two commits", _PAST
    ),
    "torch_training_quarter_batch": NotRun(
        "training/past_the_edge.py of whisper-small bf16, when its first rounds counted for eight",
        _PAST,
    ),
}
"""Results that no command of here makes again."""
