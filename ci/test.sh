#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the package and runs every test that needs no GPU: style, C++, Python, doctests and
# notebooks. About 20 minutes on 2 cores, downloads included.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

check_prerequisites
make_environment test mortgage,test
# Tools come from the environment; apt-get, which may install GoogleTest and
# Chromium, needs the last two.
export PATH=$environment/bin:$PATH:/usr/sbin:/sbin PYTHON=$environment/bin/python
require_browser

step "C++ tests under the sanitizers"
bash "$repository/ci/test_cpp.sh" sanitizers

step "style; clang-tidy reads how the C++ tests were built"
bash "$repository/ci/check_style.sh" --tidy

# The tests are for the installed package. In the repository's root Python would import the sources,
# which have no compiled part: hence another directory, and -P.
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere"
run_pytest() { python -P -m pytest -q -c "$repository/pyproject.toml" --rootdir "$repository" "$@"; }

step "doctests"
run_pytest --doctest-modules --pyargs rmm_uvm

# Tests of one process at a time leave a core idle: those of whole programs run beside the others.
step "Python tests and notebooks"
status=0
run_pytest -m "not gpu" "$repository/tests/integration" >integration.log 2>&1 &
integration=$!
run_pytest -m "not gpu" --ignore "$repository/tests/integration" "$repository/tests" || status=$?
wait "$integration" || status=$?
cat integration.log
[ "$status" -eq 0 ] || exit "$status"

step "done"
