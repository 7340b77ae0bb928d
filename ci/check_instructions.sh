#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of the C++ hot paths with callgrind, and fails where one needs over 10 %
# more than recorded in benchmarks/results/instruction_counts.json.
#   ci/check_instructions.sh [--write]     --write records the counts of now
# Counts what is shipped: the program is built in the wheel's build folder if there is one. Beside
# another compiler, C library, librmm or CXXFLAGS than those of the record nothing is compared; nor is
# it without valgrind, where that cannot be installed. A line says so, before anything is built, and
# with RMM_UVM_INSTRUCTIONS=required that is a failure: for a machine on which counts have to compare.
# PYTHON names the interpreter beside which librmm, cmake and ninja are installed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

case ${RMM_UVM_INSTRUCTIONS:-} in
  '') skipped=0 ;;
  required) skipped=1 ;;
  *)
    echo "instructions: RMM_UVM_INSTRUCTIONS is '$RMM_UVM_INSTRUCTIONS': required, or not set" >&2
    exit 2
    ;;
esac

PATH=$(dirname "$(command -v "$python")"):$PATH
build=$("$python" ci/instruction_build.py)
if [ "${1:-}" != --write ]; then
  status=0
  "$python" ci/instruction_counts.py "$build" --comparable || status=$?
  [ "$status" -ne 3 ] || exit "$skipped" # 3: the line is written
  [ "$status" -eq 0 ] || exit "$status"
fi

if ! command -v valgrind >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "instructions: installing valgrind"
  log=$(mktemp)
  { apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind; } \
    >"$log" 2>&1 || tail -n 1 "$log"
  rm "$log"
fi
if ! command -v valgrind >/dev/null; then
  echo "instructions: skipped: not counted, install valgrind (Debian and Ubuntu: apt-get install valgrind)"
  [ "${1:-}" != --write ] || exit 1 # who asked for a record gets none
  exit "$skipped"
fi

if [ "$build" = build/cpp/instructions ]; then
  cmake --fresh -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_UNITY_BUILD=ON -DPython_EXECUTABLE="$(command -v "$python")"
fi
ninja -C "$build" --quiet instruction_counts
"$python" ci/instruction_counts.py "$build" "$@"
