#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Compute Sanitizer's memcheck over tests that need a GPU: kernels that use memory which is not
# theirs, at allocations of the driver. What a pool hands out lies in one of these.
#   RMM_UVM_MANAGED_LIMIT=24GiB ci/sanitize_gpu.sh [PYTEST ARGUMENT...]
# By default contents, prefetches, wiring, budgets and torch, a process for each file; with arguments,
# what they select, in one. Takes ten times as long as the tests and longer. Fails if a test fails or
# an access is wrong.
#
# The sanitizer is looked for on PATH and in CUDA_HOME/bin: it is part of the CUDA toolkit, of which
# the version has to be the driver's, as nvidia-smi says it. SANITIZER names another. Packages of
# PyPI, nvidia-cuda-sanitizer-api 13.0 to 13.2, start no program: their launcher is missing.
# The tests refuse to run without a cap on managed memory that is safe, as under ci/test_gpu.sh.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
wrong=86 # what pytest never ends with

refuse() {
  echo "sanitize_gpu: $1" >&2
  exit 2
}

find_sanitizer() {
  if [ -n "${SANITIZER:-}" ]; then
    [ -x "$SANITIZER" ] && echo "$SANITIZER"
    return
  fi
  for place in "$(command -v compute-sanitizer || true)" \
    "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"; do
    if [ -n "$place" ] && [ -x "$place" ]; then
      echo "$place"
      return
    fi
  done
  return 1
}

[ -n "${RMM_UVM_MANAGED_LIMIT:-}" ] || refuse "set RMM_UVM_MANAGED_LIMIT, at most 24GiB, first"
sanitizer=$(find_sanitizer) ||
  refuse "no compute-sanitizer on PATH or in CUDA_HOME/bin: install the toolkit's, or set SANITIZER"

tests=$repository/tests/gpu
files=(contents prefetch wiring residency residency_cudf torch_copies torch_memory torch_embedding)

# What no run under the tool can tell, each with its reason.
left_out=(
  # It asks CUPTI, and the tool works beside no other tool for CUDA (its release notes).
  test_watching.py::test_attribution_is_told_while_it_is_on_and_costs_no_stop
  # Kernels that the tool makes longer are still at it when copies are over.
  test_torch_copies.py::test_copies_by_way_of_device_memory_do_not_hold_up_kernels
  # Under the tool torch keeps what a step of training made (docs/endurance.md): it fits no more,
  # and a pool has more blocks than the test's own.
  test_torch_copies.py::test_nothing_is_copied_where_all_fits
  test_torch_embedding.py::test_bfloat16_rows_are_views_of_the_pool_and_memory_goes_back
)
options=()
for one in "${left_out[@]}"; do
  options+=(--deselect "tests/gpu/$one")
done
# The one asks CUPTI, the other traces processes, which the tool does already.
for one in causes process_counters; do
  options+=(--ignore "$tests/test_$one.py")
done

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere" # for the installed package, see test.sh

# Failed calls of CUDA are no findings: the package asks for some that a machine may lack, and tests
# make others fail.
sanitize() {
  TESTS_UNDER_MEMCHECK=1 "$sanitizer" --tool memcheck --target-processes all \
    --error-exitcode "$wrong" --report-api-errors no --check-exit-code no \
    "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" -m gpu \
    --timeout 0 "${options[@]}" "$@"
}

if [ $# -gt 0 ]; then
  sanitize "$@"
  exit
fi
status=0
for file in "${files[@]}"; do # torch keeps memory from test to test: each has the cap for itself
  sanitize "$tests/test_$file.py" || {
    found=$?
    [ "$status" -eq "$wrong" ] || status=$found
  }
done
exit "$status"
