#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# What each night runs, and what is green before a release: all of ci/test.sh, and what it leaves out.
# Runs every part and then fails if one did. What each buys is in docs/measure/tests.md.
set -uo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
declare -a failed=()

# part COMMAND...
part() {
  printf '\n==== %s (%s s)\n' "$*" "$SECONDS"
  bash "$repository/ci/$1" "${@:2}" || failed+=("$*")
}

part test.sh --all
part wheels.sh build
part wheels.sh test 12 26.6 # the oldest RMM; the newest, for CUDA 13, is everywhere else
part demo.sh
PYTHON=$repository/build/venv-test/bin/python part fuzz.sh 60
PYTHON=$repository/build/venv-test/bin/python part chaos.sh 600

printf '\n==== %s s\n' "$SECONDS"
[ ${#failed[@]} -eq 0 ] || {
  printf 'nightly: failed: %s\n' "${failed[@]}" >&2
  exit 1
}
