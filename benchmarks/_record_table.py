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
        A script of this folder (or, with a slash in front, of the repository) and its arguments.
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


def _simulated(name: str, *words: str, clocked_parts: tuple[str, ...] = ()) -> Benchmark:
    return Benchmark(name, (f"{name}.py", *(words or JSON)), clocked_parts=clocked_parts)


def _timed(name: str, *words: str) -> Benchmark:
    return Benchmark(name, (f"{name}.py", *(words or JSON)), clocked=True)


def _gpu(result: str, *words: str, script: str = "", gpus: int = 1) -> Benchmark:
    return Benchmark(result, (f"{script or result}.py", *words, *JSON), gpus, clocked=True)


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
_TRAINING_CALLS = tuple(("torch_training.py", *words, *JSON) for words in _TRAINING)

BENCHMARKS = (
    *(Benchmark(f"published/{name}", (f"published/{name}.py", *JSON)) for name in _PUBLISHED),
    _simulated("model_calibration"),
    _simulated("residency_discards"),
    _simulated("residency_emulation"),
    _simulated("advice", FILE),
    _simulated("neighbors_consolidation"),
    _simulated("residency_policies"),
    _simulated("torch_policies"),
    Benchmark("ahead_adapts_simulated", ("ahead_adapts.py", *JSON)),
    _simulated("pool_placement", clocked_parts=("speed", "verdicts")),
    _timed("model_speed"),
    _timed("replay_speed"),
    _timed("trace_cost"),
    _timed("sampler_cost"),
    _timed("ledger_cost"),
    _timed("report_size", FILE),
    Benchmark("endurance", ("endurance.py", *JSON), clocked=True, long=True),
    Benchmark("cpp_allocate_free", ("/ci/test_cpp.sh", "benchmark", FILE), clocked=True),
    # ci/test_gpu.sh benchmarks
    _gpu("driver_facts"),
    _gpu("allocate_free"),
    _gpu("cudf_pass_20m", "--rows", "20000000", script="cudf_pass"),
    _gpu(
        *("cudf_pass_100m", "--rows", "100000000", "--pool", "7.5GiB"),
        *("--steady-bounds", "1.01", "1.01"),
        script="cudf_pass",
    ),
    Benchmark(
        "cudf_pass_20m_without_counters",
        (
            *("cudf_pass.py", "--rows", "20000000", "--only-steady"),
            *("--steady-bounds", "1.05", "1.05", *JSON),
        ),
        gpus=1,
        clocked=True,
        settings=(("RMM_UVM_COUNTERS", "off"),),
    ),
    _gpu("cudf_prefetch"),
    _gpu("recycled_memory"),
    _gpu("mortgage_pipeline"),
    _gpu("watching_exactness"),
    _gpu("watching_cost"),
    _gpu("attach_cost"),
    _gpu("shadow_proof"),
    _gpu("deferred_discards"),
    # ci/test_gpu.sh residency
    _gpu("residency", "--scale", "12"),
    _gpu("residency_mortgage"),
    _gpu("residency_mortgage_8m", "--rows", "8000000", script="residency_mortgage"),
    _gpu("residency_fits"),
    _gpu("residency_launches"),
    _gpu("residency_discards_gpu"),
    _gpu("undiscarded"),
    _gpu("migration_threads"),
    _gpu("advice_on_gpus"),
    # ci/test_gpu.sh training
    _gpu("torch_copies"),
    _gpu("torch_embedding"),
    _gpu("torch_caching"),
    Benchmark(
        *("torch_training", _TRAINING_CALLS[0]),
        gpus=1,
        clocked=True,
        more=_TRAINING_CALLS[1:],
        limit_seconds=4 * 3600,
    ),
    _gpu("torch_save_on_cpu", "--models", "whisper-small", "--dtypes", "bf16"),
    # ci/test_gpu.sh endurance
    _gpu("endurance_gpu"),
    Benchmark(
        "endurance_gpu_trimmed",
        ("endurance_gpu.py", *JSON),
        gpus=1,
        clocked=True,
        settings=(("MALLOC_TRIM_THRESHOLD_", "131072"),),
    ),
    # ci/test_gpu.sh cluster
    *(
        _gpu(name, gpus=2)
        for name in (
            *("message_size", "ipc_copy", "dask_results", "dask_shuffle", "ipc_exhaustion"),
            *("worker_killed", "dask_pause", "mortgage_cluster"),
        )
    ),
    # ci/test_gpu.sh neighbors
    *(
        _gpu(name, gpus=2)
        for name in ("neighbors_paths", "neighbors_interference", "neighbors_loops")
    ),
    # ci/test_gpu.sh others
    _gpu("tpch", "--libraries", "pandas-pdsh", "pdsh"),
    _gpu("dask_scripts", "--runs", "3", "--rounds", "1", "--time-limit", "130", gpus=2),
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
    "model_profile": NotRun(
        "shares of functions: model_profile.py, for those who make the model faster",
        "a share may rise as all fall: ci/check_instructions.sh judges counts, model_speed.py time",
    ),
    "mortgage_allocations_parts1": NotRun("what cuDF allocates: mortgage_allocations.py", _DATA),
    "mortgage_allocations_parts4": NotRun("what cuDF allocates: mortgage_allocations.py", _DATA),
    "neighbors_interference_before": NotRun(
        "neighbors_interference.py, of fewer and longer rounds", _PAST
    ),
    "residency_launches_libcuda": NotRun("residency_launches.py, moving by libcuda only", _PAST),
    "residency_mortgage_before": NotRun("residency_mortgage.py, before room was made early", _PAST),
    "torch_copies_tight": NotRun("steps of copies past a tight budget, at three commits", _PAST),
    "torch_training_full_batch": NotRun(
        "torch_training.py at the full batch, 24 steps a run",
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
        "torch_training.py of whisper-small bf16, when its first rounds counted for eight", _PAST
    ),
}
"""Results that no command of here makes again."""
