#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs both packages and tests a change where there is no GPU: style, C++, Python, doctests and
# notebooks; fuzzes every reader for some seconds. Some 16 minutes on two cores, what is downloaded
# included; what each minute buys, and what waits for the night, is in docs/measure/tests.md.
#   ci/test.sh [--all]
# --all adds tests marked `nightly`, all examples of properties, and sanitizers and clang-tidy on
# everything. ci/nightly.sh runs it, and other checks.
# CHANGED_SINCE names the commit before the change; by default that is where it left origin/main.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

chosen=(-m "not gpu and not nightly" --hypothesis-profile=few)
tidy=--tidy-changed
sanitized=sanitizers
if [ "${1:-}" = --all ]; then
  chosen=(-m "not gpu")
  tidy=--tidy
  sanitized=all
elif ! changed cpp rmm_uvm/_lib CMakeLists.txt pyproject.toml ci/test_cpp.sh tests/fuzz; then
  sanitized=unity
fi

check_prerequisites
export PATH=$PATH:/usr/sbin:/sbin # apt-get needs them, which may install what tests need
require_browser
work=$(mktemp -d)
# Where one job fails, those beside it end too.
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$work"' EXIT

PROGRAMS_SEED=${PROGRAMS_SEED:-$(tree_seed)}
export PROGRAMS_SEED # of tests/stateful, and of the random programs in C++

# finished JOB NAME: waits for a job that ran beside others, shows what it wrote, returns its status.
finished() {
  local status=0
  wait "$1" || status=$?
  step "$2, from above"
  cat "$work/$2.log"
  return "$status"
}

# beside COMMAND...: runs each command, also where one before it failed. A signal ends the job at
# once, since the job only waits.
beside() {
  local status=0 command
  trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT
  trap 'exit 143' TERM
  for command in "$@"; do
    step "$command"
    $command &
    wait $! || status=$?
  done
  return "$status"
}

# With exec, so that the signal that ends a job reaches what it runs.
cpp() { PYTHON=$builder/bin/python exec bash "$repository/ci/test_cpp.sh" "$sanitized"; }
instructions() { PYTHON=$builder/bin/python exec bash "$repository/ci/check_instructions.sh"; }
style() { exec bash "$repository/ci/check_style.sh" "$tidy"; }
api() { exec bash "$repository/ci/build_api.sh"; }
# The tests are for the installed package. In the repository's root Python would import the sources,
# which have no compiled part: hence another directory, and -P.
run_pytest() { python -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" "$@"; }
doctests() { run_pytest --doctest-modules --pyargs rmm_uvm rmm_uvm_mortgage; }
fuzzing() {
  local status=0
  bash "$repository/ci/fuzz.sh" --short || status=$?
  [ "$status" -eq 3 ] || return "$status" # 3: there is no atheris for this Python; the line is written
}

step "what to build with"
make_builder

step "the packages are installed; beside that, and beside the Python tests, C++ tests ($sanitized)"
beside cpp >"$work/cpp.log" 2>&1 &
cpp=$!
make_environment test test
export PATH=$environment/bin:$PATH PYTHON=$environment/bin/python
cd "$work"

step "Python tests; beside them $tidy style, doctests, the API reference, instructions and fuzzing"
# They use the time in which Python tests wait.
beside doctests api instructions style fuzzing >"$work/others.log" 2>&1 &
others=$!
status=0
# One queue of files for two workers. Unit tests, whose files are short, come last.
run_pytest "${chosen[@]}" --durations 15 -n 2 --dist loadfile --no-loadscope-reorder \
  "$repository/tests" || status=$?
finished "$cpp" cpp || status=$?
finished "$others" others || status=$?
[ "$status" -eq 0 ] || exit "$status"

step "done"
