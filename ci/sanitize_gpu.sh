#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Compute Sanitizer's memcheck over tests that need a GPU: kernels that use memory which is not
# theirs, at allocations of the driver. What a pool hands out lies in one of these.
#   RMM_UVM_MANAGED_LIMIT=24GiB ci/sanitize_gpu.sh [PYTEST ARGUMENT...]
# By default all of them, a process for each file, which takes 15 minutes on one GPU; with arguments,
# what they select, in one. What is left out below runs where it is named by itself, a file or a
# test. Fails if a test fails or an access is wrong.
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

# What is not run under the tool, each with its reason.
files_left_out=(
  # It asks CUPTI, and the tool works beside no other tool for CUDA (its release notes).
  causes
  # It traces processes, which the tool does already.
  process_counters
  # Clusters of Dask, whose workers have to start in a given time, and one of which is killed. Tried
  # once: of dask_cluster three tests passed, and the fourth was still at it after 150 s in all.
  dask_cluster local_cluster mortgage_cluster
)
tests_left_out=(
  # It asks CUPTI, too.
  test_watching.py::test_attribution_is_told_while_it_is_on_and_costs_no_stop
  # Kernels that the tool makes longer are still at it when copies are over.
  test_torch_copies.py::test_copies_by_way_of_device_memory_do_not_hold_up_kernels
  # Its bound is of microseconds, of a program that the tool makes longer.
  test_cluster_watching.py::test_heartbeat_costs_little
  # Its ranks wait for each other for a minute at most: not tried.
  test_torch_programs.py::test_ranks_past_their_budgets_on_two_gpus_have_the_losses_of_ranks_without
)
named() { # whether a word of the command line ends with this
  local word
  for word in "${words[@]}"; do [[ $word != *"$1" ]] || return 0; done
  return 1
}
words=("$@")
tests=$repository/tests/gpu
options=()
files=("$repository/tests/contract" "$repository/tests/unit/mortgage/test_engines.py")
for path in "$tests"/test_*.py; do
  name=$(basename "$path" .py)
  case " ${files_left_out[*]} " in
    *" ${name#test_} "*) named "$name.py" || options+=(--ignore "$path") ;;
    *) files+=("$path") ;;
  esac
done
for one in "${tests_left_out[@]}"; do
  named "$one" || options+=(--deselect "tests/gpu/$one")
done

selected=()
for word in "$@"; do # they are read in another folder
  path=${word%%::*}
  [ ! -e "$path" ] || word=$(realpath "$path")${word#"$path"}
  selected+=("$word")
done

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere" # for the installed package, see test.sh

# Failed calls of CUDA are no findings: the package asks for some that a machine may lack, and tests
# make others fail. No backtraces of the host: for these the tool keeps Python's frames at every
# launch, with all that they hold (docs/measure/endurance.md).
sanitize() {
  "$sanitizer" --tool memcheck --target-processes all --show-backtrace device \
    --error-exitcode "$wrong" --report-api-errors no --check-exit-code no \
    "$python" -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" -m gpu \
    --timeout 0 "${options[@]}" "$@"
}

if [ $# -gt 0 ]; then
  sanitize "${selected[@]}"
  exit
fi
status=0
for path in "${files[@]}"; do # a context that a wrong access has ended is no other file's
  sanitize "$path" || {
    found=$?
    [ "$status" -eq "$wrong" ] || status=$found
  }
done
exit "$status"
