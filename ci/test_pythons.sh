#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the wheel beside each interpreter, without any extra, and tries in it what
# tests/environments/columns.py says: import, doctor, a simulated pool, a monitor.
#   ci/test_pythons.sh [PYTHON ...]     default: python3.11 and newer, of PATH and of pyenv
# The wheel is abi3: one for all. It is built anew each time, and takes the place of the one that an
# environment had. Not part of CI, since it downloads RMM for each of them; about a minute each.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

readonly folder=$repository/build/pythons
interpreters=("$@")
if [ ${#interpreters[@]} -eq 0 ]; then
  for minor in 11 12 13 14 15; do
    # One that only says that there is none, as pyenv's do, is none.
    for found in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if "$found" -c 'import venv' 2>/dev/null; then
        interpreters+=("$found")
        break
      fi
    done
  done
fi
[ ${#interpreters[@]} -gt 0 ] || missing "Python 3.11 or newer"

mkdir -p "$folder"
rm -f "$folder"/*.whl
make_builder
build_wheels "$folder" .

failed=0
for interpreter in "${interpreters[@]}"; do
  version=$("$interpreter" -c 'import platform; print(platform.python_version())')
  environment=$folder/$version
  python=$interpreter make_venv "$environment"
  install_wheels "$environment" "$folder"/*.whl
  if (cd "$folder" && PYTHONPATH=$repository/tests "$environment/bin/python" -P -c '
from environments.columns import COLUMNS
for name, column in COLUMNS.items():
    column()
' >"$folder/$version.log" 2>&1); then
    echo "pythons: $version: import, doctor, pool and monitor work"
  else
    echo "pythons: $version: $(tail -n 1 "$folder/$version.log")"
    failed=1
  fi
done
exit "$failed"
