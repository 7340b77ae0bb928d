#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the site, documents and the API reference of the package that is installed beside PYTHON,
# into build/site; a warning is an error. Sphinx is fetched into build/site-tools. A minute.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly python=${PYTHON:-python3}
readonly tools=$PWD/build/site-tools
readonly wanted=(sphinx==9.0.4 myst-parser==5.2.0 pydata-sphinx-theme==0.24.0 sphinx-copybutton==0.5.2)
if [ "$(cat "$tools/version" 2>/dev/null)" != "${wanted[*]}" ]; then
  rm -rf "$tools"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$tools/site" "${wanted[@]}"
  printf '%s' "${wanted[*]}" >"$tools/version"
fi
repository=$PWD
# Elsewhere, and without this folder in the path: the sources here have no compiled part.
cd "$tools"
PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$tools/site "$python" -P -m sphinx -q -W --keep-going -E \
  -d "$tools/doctrees" -c "$repository/docs" -b html "$repository" "$repository/build/site"
"$python" -P "$repository/ci/check_api.py" "$repository/build/site/objects.inv"
echo "site: build/site/index.html, without a warning"
