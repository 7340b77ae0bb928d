#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the C++ tests.
#   ci/test_cpp.sh [plain|unity|asan|tsan|sanitizers|all|benchmark [FILE]]     default: plain
# plain      every test, each file compiled alone
# unity      every test, ten files at a time: what CI runs where no C++ is changed
# asan       every test under the address and undefined-behaviour sanitizers
# tsan       the concurrency tests under the thread sanitizer
# sanitizers each test under one of the two: what CI runs where C++ is changed
# all        plain, asan and tsan
# benchmark  cost of allocate + free; writes FILE or benchmarks/results/cpp_allocate_free.json
# PROGRAMS_SEED makes the same random programs again; otherwise they are others each time.
# PYTHON names the interpreter beside which librmm is installed; without librmm there,
# build/venv-build gets the wheels that pyproject.toml names.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

readonly variant=${1:-plain}
readonly asked=${2:-}
readonly build=build/cpp
readonly quick="-O0 -g1"  # tests are small: compiling them is what takes time
readonly one_thread=(core_tests replay_tests monitor_tests cuda_tests mr_tests)
readonly threads=(concurrency_tests pool_concurrency_tests)
readonly every=("${one_thread[@]}" "${threads[@]}")
jobs=$(nproc)
launcher=() # of the tests

say() { printf 'test_cpp: %s\n' "$*" >&2; }

# What has to be there; as root on Debian or Ubuntu it is installed.
require_packages() {
  local -a missing=()
  command -v g++ >/dev/null || missing+=(g++)
  [ -e /usr/include/gtest/gtest.h ] || missing+=(libgtest-dev)
  [ -e /usr/include/benchmark/benchmark.h ] || missing+=(libbenchmark-dev)
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      "${missing[@]}" >/dev/null
  else
    say "missing: ${missing[*]} (Debian and Ubuntu: apt-get install ${missing[*]})"
    exit 1
  fi
}

# Sets PYTHON to an interpreter that has the wheels to build against, and cmake and ninja in PATH.
require_wheels() {
  local wheels_python=$python
  if ! "$wheels_python" cpp/cmake/installed_headers.py >/dev/null 2>&1; then
    say "no librmm beside $wheels_python: installing the build requirements into build/venv-build"
    make_builder
    wheels_python=$builder/bin/python
  fi
  PYTHON=$("$wheels_python" -c 'import sys; print(sys.executable)')
  PATH="$(dirname "$PYTHON"):$PATH"
  if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
    "$PYTHON" -m pip install -q cmake ninja
  fi
}

# configure NAME SANITIZERS OPTIONS: a build folder of its own.
configure() {
  local name=$1 sanitizers=$2 options=$3 unity=ON checks=ON
  [ "$name" != benchmark ] || checks=OFF
  [ "$name" != plain ] || unity=OFF # what a developer builds again and again, file by file
  # Not a Debug build: without NDEBUG, RMM's headers assert on a machine without a GPU.
  cmake -S . -B "$build/$name" -G Ninja --log-level=WARNING \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_UNITY_BUILD=$unity -DRMM_UVM_TESTS=ON \
    -DRMM_UVM_CHECK_LOCKS=$checks -DRMM_UVM_SANITIZE="$sanitizers" -DPython_EXECUTABLE="$PYTHON" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$options -DNDEBUG"
}

# build_variant NAME SANITIZERS OPTIONS TARGET...
build_variant() {
  configure "$1" "$2" "$3"
  ninja -C "$build/$1" -j "$jobs" --quiet "${@:4}"
}

# run_tests NAME CTEST_OPTION...: what failed is shown whole, of the rest the numbers.
run_tests() {
  local name=$1 status=0
  shift
  say "$name"
  "${launcher[@]}" ctest --test-dir "$build/$name/cpp" --no-tests=error -j "$jobs" "$@" >"$build/$name.log" || status=$?
  if [ "$status" -eq 0 ]; then
    grep -E '  PASSED  |PROGRAMS_SEED=' "$build/$name.log" || true
    tail -n 12 "$build/$name.log"
  else
    cat "$build/$name.log"
  fi
  return "$status"
}

plain() {
  build_variant plain "" "$quick" "${every[@]}"
  run_tests plain --output-on-failure
}

unity() {
  build_variant unity "" "$quick" "${every[@]}"
  run_tests unity --verbose
}

# asan_of CTEST_OPTION... -- TARGET...
asan_of() {
  local -a options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  build_variant asan address,undefined "$quick" "${@:2}"
  ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    run_tests asan --verbose "${options[@]}"
}

asan() { asan_of -- "${every[@]}"; }

tsan() {
  build_variant tsan thread "$quick" "${threads[@]}"
  # Its memory layout does not suit kernels that spread addresses widely.
  launcher=(setarch --addr-no-randomize)
  TSAN_OPTIONS=halt_on_error=1 run_tests tsan --verbose -L concurrency
  launcher=()
}

sanitizers() {
  asan_of -LE concurrency -- "${one_thread[@]}"
  tsan
}

benchmark() {
  build_variant benchmark "" -O2 allocate_free residency_ledger
  local result=${asked:-benchmarks/results/cpp_allocate_free.json} commit
  commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
  mkdir -p "$(dirname "$result")"
  "$build/benchmark/cpp/benchmarks/allocate_free" --benchmark_repetitions=5 \
    --benchmark_report_aggregates_only=true --benchmark_enable_random_interleaving=true \
    --benchmark_context=commit="$commit" \
    --benchmark_context=processor="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    --benchmark_out="$result" --benchmark_out_format=json
  # Which host and folder it ran in is nobody's business; the processor is in the context.
  "$PYTHON" - "$result" <<'PYTHON_END'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
result = json.loads(path.read_text())
for name in ("host_name", "executable", "load_avg"):
    result["context"].pop(name, None)
path.write_text(json.dumps(result, indent=2) + "\n")
PYTHON_END
  say "written: $result"
}

case $variant in
  plain | unity | asan | tsan | sanitizers | benchmark) selected=("$variant") ;;
  all) selected=(plain asan tsan) ;;
  *)
    say "unknown variant '$variant': plain, unity, asan, tsan, sanitizers, all or benchmark"
    exit 2
    ;;
esac
require_packages
mkdir -p "$build"
require_wheels
configure plain "" "$quick" # clang-tidy reads there how each file is compiled
for one in "${selected[@]}"; do
  "$one"
done
