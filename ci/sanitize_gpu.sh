#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Compute Sanitizer's memcheck over tests that need a GPU: kernels that use memory which is not
# theirs, at allocations of the driver. What a pool hands out lies in one of these.
#   RMM_UVM_MANAGED_LIMIT=24GiB ci/sanitize_gpu.sh [PYTEST ARGUMENT...]
# By default contents, prefetches, wiring and budgets; with arguments, what they select. Takes ten
# times as long as the tests and longer. Fails if a test fails or an access is wrong.
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
selected=("$@")
[ $# -gt 0 ] || selected=("$tests"/test_{contents,prefetch,wiring,residency,residency_cudf}.py)

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere" # for the installed package, see test.sh

# Left out: what asks CUPTI, since the tool works beside no other tool for CUDA (its release notes,
# known limitations), and what traces processes, which the tool does already. Failed calls of CUDA
# are no findings: the package asks for some that a machine may lack, and tests make others fail.
"$sanitizer" --tool memcheck --target-processes all --error-exitcode "$wrong" \
  --report-api-errors no --check-exit-code no \
  "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" -m gpu \
  --timeout 0 --ignore "$tests/test_causes.py" --ignore "$tests/test_process_counters.py" \
  --deselect tests/gpu/test_watching.py::test_attribution_is_told_while_it_is_on_and_costs_no_stop \
  "${selected[@]}"
