#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# What needs a GPU: its tests, and the benchmarks that write benchmarks/results/.
#   RMM_UVM_MANAGED_LIMIT=24GiB ci/test_gpu.sh \
#     [tests|benchmarks|residency|training|endurance|cluster|neighbors|others|all]
# By default the tests.
# rmm-uvm has to be installed beside PYTHON (default python3), with the extras test, cudf, cupy and,
# for the benchmarks, torch; and rmm-uvm-mortgage[gpu], from mortgage/. One GPU, one process at a time; but among
# `tests`, and so in `residency` and `training`, are some of two GPUs or of a process for each, which use
# what is there: with CUDA_VISIBLE_DEVICES=0 they are skipped or have one. `residency` and
# `training` (torch, transformers) are what runs with a budget, and not part of `all`. Nor are `endurance`,
# eight minutes of mixed load, nor `neighbors` and `cluster`: they need two GPUs of one host, and run
# several processes at once, among which each script divides the cap; `cluster` needs dask-cudf too.
# `others`, what others wrote, on two GPUs: queries of cudf.pandas and cudf-polars (polars,
# cudf-polars, and for its own benchmark kvikio, nvtx and nvidia-ml-py), cuML and cuGraph past a budget,
# dask-cuda's scripts (dask-cudf). Tests of other projects need checkouts: benchmarks/suites/compare.py.
#
# More managed memory than the card has free can hang the GPU, for everybody: without a cap that is
# at most 24 GiB and no more than what is free on each GPU that is seen, nothing runs.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
what=${1:-tests}
results=$repository/benchmarks/results

refuse() {
  echo "test_gpu: $1" >&2
  exit 2
}

[ -n "${RMM_UVM_MANAGED_LIMIT:-}" ] || refuse "set RMM_UVM_MANAGED_LIMIT, at most 24GiB, first"
case $what in
  tests | benchmarks | residency | training | endurance | cluster | neighbors | others | all) ;;
  *) refuse "unknown argument '$what': one of tests, benchmarks, residency, training, endurance, cluster, neighbors, others, all" ;;
esac

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere" # for the installed package, see test.sh
"$python" -P - <<'CHECK' || exit 2
import sys

import rmm_uvm
from rmm_uvm.errors import UvmError
from rmm_uvm._lib.limits import managed_limit_bytes

try:
    count = rmm_uvm.cuda_driver(0).device_count
    free_bytes = [rmm_uvm.cuda_driver(device).memory()[0] for device in range(count)]
    limit_bytes = managed_limit_bytes()
except UvmError as error:
    sys.exit(f"test_gpu: {error}")
if limit_bytes is None or limit_bytes > min(24 << 30, *free_bytes):
    sys.exit(
        f"test_gpu: RMM_UVM_MANAGED_LIMIT is {limit_bytes} bytes: at most 24 GiB, "
        f"and no more than the bytes that are free on each device that is seen: {free_bytes}"
    )
CHECK

run_tests() {
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -m gpu "$repository/tests"
}

benchmark() {
  echo "== $*"
  local script=$1
  shift
  # No -P: a script's own folder comes first, as for whoever runs it; the package is not in there.
  "$python" "$repository/benchmarks/$script" "$@"
}

# each SCRIPT=RESULT...: one that fails does not keep the others from running.
each() {
  local failed=0 one
  for one in "$@"; do
    benchmark "${one%=*}.py" --json "$results/${one#*=}.json" || failed=1
  done
  return "$failed"
}

run_benchmarks() {
  benchmark driver/driver_facts.py --json "$results/driver_facts.json"
  benchmark pool/allocate_free.py --json "$results/allocate_free.json"
  benchmark pool/cudf_pass.py --rows 20000000 --json "$results/cudf_pass_20m.json"
  benchmark pool/cudf_pass.py --rows 100000000 --pool 7.5GiB --steady-bounds 1.01 1.01 \
    --json "$results/cudf_pass_100m.json"
  RMM_UVM_COUNTERS=off benchmark pool/cudf_pass.py --rows 20000000 --only-steady \
    --steady-bounds 1.05 1.05 --json "$results/cudf_pass_20m_without_counters.json"
  benchmark pool/cudf_prefetch.py --json "$results/cudf_prefetch.json"
  benchmark driver/recycled_memory.py --json "$results/recycled_memory.json"
  benchmark mortgage/pipeline.py --json "$results/mortgage_pipeline.json"
  benchmark watching/exactness.py --json "$results/watching_exactness.json"
  benchmark watching/cost.py --json "$results/watching_cost.json"
  benchmark watching/attach_cost.py --json "$results/attach_cost.json"
  benchmark watching/lines_cost.py --gpu --json "$results/lines_cost.json"
  benchmark mortgage/shadow_proof.py --json "$results/shadow_proof.json"
}

# Past the edge, with a budget in the place of a smaller card: about an hour.
run_residency() {
  local failed=0
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -m gpu "$repository"/tests/gpu/test_residency*.py || failed=1
  each residency/fits=residency_fits driver/deferred_discards=deferred_discards \
    residency/undiscarded=undiscarded driver/migration_threads=migration_threads || failed=1
  benchmark past_the_edge/run.py --rounds 6 \
    --sides resident,default,fault-driven,by-hand,by-hand-buffered \
    --json "$results/past_the_edge_cudf.json" || failed=1
  benchmark past_the_edge/run.py --rounds 6 --factor 3 \
    --sides resident,default,by-hand,by-hand-buffered \
    --json "$results/past_the_edge_cudf_three_budgets.json" || failed=1
  benchmark past_the_edge/run.py --rounds 6 --sides default,fault-driven-prefetched \
    --json "$results/past_the_edge_cudf_prefetched.json" || failed=1
  benchmark past_the_edge/run.py --rounds 4 \
    --sides resident,cudf-spilling,dask-spilling,polars-streaming,pinned-behind \
    --json "$results/past_the_edge_cudf_alternatives.json" || failed=1
  benchmark past_the_edge/run.py --factor 3 --program pds-h-eager --budget 2233891004 --rounds 4 \
    --sides default,polars-streaming \
    --json "$results/past_the_edge_pds_h_eager_three_budgets.json" || failed=1
  benchmark past_the_edge/run.py --factor 2 --program mortgage --rounds 6 \
    --sides resident,default --json "$results/past_the_edge_mortgage_two_budgets.json" || failed=1
  local call words
  for call in "merge-and-sort --sides resident,default,fault-driven --factor 2.3 --rounds 6" \
    "mortgage --sides resident,default,fault-driven --rounds 6" \
    "training --sides resident,announced,fault-driven --rounds 6" \
    "cudf-pandas --sides resident,default --budget 1GiB --rounds 6" \
    "pds-h --sides resident,default --budget 1GiB --rounds 6" \
    "pds-h-eager --sides default,polars-streaming --budget 4467782008 --rounds 4" \
    "xgboost --sides resident,default --budget 1GiB --pieces 12 --rounds 6" \
    "cupy --sides resident,default --budget 4GiB --rounds 6" \
    "swin-b --sides resident,default --budget 6GiB --pieces 1 --rounds 6 --sample-ms 20" \
    "graphsage --sides resident,default --budget 4GiB --pieces 1 --rounds 5"; do
    read -ra words <<<"$call"
    benchmark past_the_edge/run.py --program "${words[@]}" \
      --json "$results/past_the_edge_${words[0]//-/_}.json" || failed=1
  done
  each past_the_edge/bound=past_the_edge_bound pool/seeing_cost=seeing_cost || failed=1
  return "$failed"
}

# Torch: its tests, what fits, kernels beside copies, and where a step's time goes.
run_training() {
  local failed=0
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -m gpu "$repository"/tests/gpu/test_torch_*.py || failed=1
  each training/copies=torch_copies training/fits=torch_fits \
    training/where_time_goes=where_time_goes || failed=1
  return "$failed"
}

# A figure that is missed does not keep the others from being measured.
run_cluster() {
  local failed=0
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -m gpu "$repository"/tests/gpu/test_{comm,dask_cluster,ipc,local_cluster,mortgage_cluster,residency}.py || failed=1
  each cluster/message_size=message_size cluster/ipc_copy=ipc_copy \
    cluster/results=dask_results cluster/shuffle=dask_shuffle \
    cluster/ipc_exhaustion=ipc_exhaustion cluster/worker_killed=worker_killed \
    cluster/pause=dask_pause mortgage/cluster=mortgage_cluster || failed=1
  return "$failed"
}

# Two GPUs with peer access: about ten minutes.
run_neighbors() {
  local failed=0
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" \
    -m gpu "$repository"/tests/gpu/test_{topology,neighbors}.py || failed=1
  each neighbors/paths=neighbors_paths neighbors/interference=neighbors_interference || failed=1
  return "$failed"
}

# Times beside stock, and equal answers: about five minutes.
run_others() {
  local failed=0 libraries=(pandas-pdsh pdsh) library why
  # Its last line names the package that is missing; queries that were written here need none of it.
  if ! why=$("$python" -P -c 'import cudf_polars.streaming.benchmarks.pdsh' 2>&1); then
    echo "test_gpu: without cudf-polars' queries: ${why##*$'\n'}" >&2
    libraries=(pandas)
    failed=1
  fi
  benchmark tpch/compare.py --libraries "${libraries[@]}" --json "$results/tpch.json" || failed=1
  for library in cuml cugraph; do
    if "$python" -P -c "import $library" 2>/dev/null; then
      benchmark past_the_edge/libraries.py --library "$library" --json "$results/libraries_$library.json" || failed=1
    else
      echo "test_gpu: without $library, which is not installed" >&2
      failed=1
    fi
  done
  benchmark cluster/scripts.py --runs 3 --rounds 1 --time-limit 130 --json "$results/dask_scripts.json" || failed=1
  return "$failed"
}

case $what in
  tests) run_tests ;;
  benchmarks) run_benchmarks ;;
  cluster) run_cluster ;;
  neighbors) run_neighbors ;;
  others) run_others ;;
  residency) run_residency ;;
  training) run_training ;;
  endurance) benchmark endurance/gpu.py --json "$results/endurance_gpu.json" ;;
  all)
    run_tests
    run_benchmarks
    ;;
esac
