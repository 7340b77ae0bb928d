#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes the readers of files and settings with atheris.
#   ci/fuzz.sh [SECONDS [TARGET...]]     default: 60 seconds, every target of tests/fuzz/targets.py
#   ci/fuzz.sh --short     some seconds each (43 together), from the repository's corpus alone: what CI runs
#   ci/fuzz.sh --keep      what runs grew below build/fuzz/work goes into tests/fuzz/grown, where it reaches more
# Tests the installed package of PYTHON. Atheris is fetched into build/fuzz if PYTHON has none; where
# there is none for it, a line says so and the status is 3.
# Inputs that were found stay below build/fuzz/work, by target: FOUND and the file's name are told,
# and the status is 1. An hour or more of every target is written to benchmarks/results/fuzzing.json,
# anything less to build/fuzz/fuzzing.json.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh
readonly python
options=()
keeping=
if [ "${1:-}" = --keep ]; then
  keeping=yes
  shift
elif [ "${1:-}" = --short ]; then
  options=(--fresh --seed "$(tree_seed)")
  set -- 30
else
  renice -n 19 $$ >/dev/null # an hour of it is nobody's hurry
fi
readonly seconds=${1:-60}
shift || true
readonly folder=$PWD/build/fuzz

mkdir -p "$folder/work"
version=$("$python" -c 'import platform; print(platform.python_version())')
site=$folder/site-$version
export PYTHONPATH=$PWD/tests:$site${PYTHONPATH:+:$PYTHONPATH}
if ! "$python" -P -c "import atheris" 2>/dev/null; then
  # As a wheel, since compiling it needs a clang with libFuzzer of its own.
  if ! "$python" -m pip install -q --disable-pip-version-check --only-binary :all: --upgrade \
    --target "$site" "atheris==3.0.0" >"$folder/install.log" 2>&1; then
    echo "fuzzing: nothing was fuzzed, no atheris for Python $version: $(tail -n 1 "$folder/install.log")"
    exit 3
  fi
fi
result=$folder/fuzzing.json
if [ "$seconds" -ge 3600 ] && [ $# -eq 0 ]; then
  result=$PWD/benchmarks/results/fuzzing.json
fi
# Elsewhere, since the sources here have no compiled part.
cd "$folder"
[ -z "$keeping" ] || exec "$python" -P -m fuzz.keep "$folder/work"
exec "$python" -P -m fuzz.run ${options[@]+"${options[@]}"} --seconds "$seconds" \
  --result "$result" --work "$folder/work" "$@"
