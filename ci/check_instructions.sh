#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of the C++ hot paths with callgrind, and fails where one needs over 10 %
# more than recorded in benchmarks/results/instruction_counts.json.
#   ci/check_instructions.sh [--write]     --write records the counts of now
# Counts what is shipped: the program is built in the wheel's build folder if there is one. Beside
# another compiler or C library than those of the record nothing is compared; a line says so.
# PYTHON names the interpreter beside which librmm, cmake and ninja are installed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

if ! command -v valgrind >/dev/null; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "instructions: installing valgrind"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind >/dev/null
  else
    echo "instructions: missing: valgrind (Debian and Ubuntu: apt-get install valgrind)" >&2
    exit 1
  fi
fi

PATH=$(dirname "$(command -v "$python")"):$PATH
build=$(find build -maxdepth 1 -type d -name 'cp3*-abi3-*' | head -n 1)
if [ -z "$build" ] || [ ! -e "$build/build.ninja" ]; then
  build=build/cpp/instructions
  cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    -DPython_EXECUTABLE="$(command -v "$python")"
fi
ninja -C "$build" --quiet instruction_counts
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
"$python" ci/instruction_counts.py "$build/cpp/benchmarks/instructions/instruction_counts" \
  --compiler "$compiler" "$@"
