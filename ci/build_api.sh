#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the API reference of the package that is installed beside PYTHON into build/api; a warning
# is an error. Sphinx is fetched into build/api-tools. Under half a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly python=${PYTHON:-python3}
readonly tools=$PWD/build/api-tools
readonly wanted=sphinx==9.0.4
if [ "$(cat "$tools/version" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$tools"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$tools/site" "$wanted"
  printf '%s' "$wanted" >"$tools/version"
fi
repository=$PWD
# Elsewhere, and without this folder in the path: the sources here have no compiled part.
cd "$tools"
PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$tools/site "$python" -P -m sphinx -q -W --keep-going -E \
  -d "$tools/doctrees" -b html "$repository/docs/api" "$repository/build/api"
"$python" -P "$repository/ci/check_api.py" "$repository/build/api/objects.inv"
echo "api: build/api/index.html, without a warning"
