#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes the readers of files and settings with atheris.
#   ci/fuzz.sh [SECONDS] [TARGET...]     default: 60 seconds, every target of tests/fuzz/targets.py
# Tests the installed package of PYTHON. Atheris is fetched into build/fuzz if PYTHON has none.
# Inputs that were found stay below build/fuzz, by target. An hour or more of every target is
# written to benchmarks/results/fuzzing.json, anything less to build/fuzz/fuzzing.json.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly python=${PYTHON:-python3}
readonly seconds=${1:-60}
shift || true
readonly folder=$PWD/build/fuzz

mkdir -p "$folder/work"
if ! "$python" -P -c "import atheris" 2>/dev/null && [ ! -d "$folder/site/atheris" ]; then
  "$python" -m pip install -q --target "$folder/site" "atheris==3.0.0"
fi
result=$folder/fuzzing.json
if [ "$seconds" -ge 3600 ] && [ $# -eq 0 ]; then
  result=$PWD/benchmarks/results/fuzzing.json
fi
export PYTHONPATH=$PWD/tests:$folder/site${PYTHONPATH:+:$PYTHONPATH}
# Elsewhere, since the sources here have no compiled part.
cd "$folder"
nice -n 19 "$python" -P -m fuzz.run --seconds "$seconds" --result "$result" \
  --work "$folder/work" "$@"
