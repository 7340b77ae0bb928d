#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs both packages and runs every test that needs no GPU: style, C++, Python, doctests and
# notebooks; fuzzes every reader for some seconds. How long it takes is in CONTRIBUTING.md.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

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
  cat "$work/$2.log"
  return "$status"
}

step "what to build with"
make_builder

# Installing waits for the network most of the time.
step "C++ tests under the sanitizers; meanwhile the packages are installed"
make_environment test test >"$work/install.log" 2>&1 &
installing=$!
environment=$repository/build/venv-test
PYTHON=$builder/bin/python bash "$repository/ci/test_cpp.sh" sanitizers
finished "$installing" install

# It takes nobody's turn: half a minute of one core, which the next step leaves idle.
PYTHON=$environment/bin/python nice -n 5 bash "$repository/ci/fuzz.sh" --short >"$work/fuzz.log" 2>&1 &
fuzzing=$!

step "instructions of the hot paths; meanwhile every reader is fuzzed"
PYTHON=$builder/bin/python bash "$repository/ci/check_instructions.sh"
export PATH=$environment/bin:$PATH PYTHON=$environment/bin/python

# The tests are for the installed package. In the repository's root Python would import the sources,
# which have no compiled part: hence another directory, and -P.
cd "$work"
run_pytest() { python -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" "$@"; }

# waited COMMAND...: so that a signal need not wait for the command.
waited() {
  "$@" &
  wait $!
}

# Two jobs of about the same length. Tests of whole programs often wait: style goes beside them.
apart=()
for group in integration stateful published environments; do
  apart+=("$repository/tests/$group")
done
beside() {
  local status=0
  trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT
  trap 'exit 143' TERM # at once, since it only ever waits
  nice bash "$repository/ci/check_style.sh" --tidy >style.log 2>&1 & # C++ as the tests were built
  local style=$!
  step "tests of whole programs, notebooks, states, environments and published tables"
  waited run_pytest -m "not gpu" "${apart[@]}" || status=$?
  step "doctests"
  waited run_pytest --doctest-modules --pyargs rmm_uvm rmm_uvm_mortgage || status=$?
  step "API reference"
  waited bash "$repository/ci/build_api.sh" || status=$?
  step "the oldest RMM that is supported, for CUDA 12; the newest, for CUDA 13, is beside everything else"
  { waited bash "$repository/ci/wheels.sh" build && waited bash "$repository/ci/wheels.sh" test 12 26.6; } || status=$?
  step "style"
  finished "$style" style || status=$?
  return "$status"
}

step "Python tests; meanwhile those of whole programs, doctests, API reference, style"
status=0
beside >beside.log 2>&1 &
others=$!
run_pytest -m "not gpu" --durations 15 "${apart[@]/#/--ignore=}" "$repository/tests" || status=$?
step "the others, from above"
finished "$others" beside || status=$?
step "fuzzing, from above"
fuzzed=0
finished "$fuzzing" fuzz || fuzzed=$?
# 3: there is no atheris for this Python; the line is written.
[ "$fuzzed" -eq 0 ] || [ "$fuzzed" -eq 3 ] || status=$fuzzed
[ "$status" -eq 0 ] || exit "$status"

step "done"
