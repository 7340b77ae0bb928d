#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Asks PyPI which of the installed packages have known vulnerabilities.
#   ci/audit.sh [PYTHON]     default: the environment that ci/test.sh made, build/venv-test
# Not part of CI: besides packages it needs PyPI's database of vulnerabilities, over the network, and
# what it says changes without a change here. docs/security.md has the last result. Exit status 1
# if there is any, 2 if nothing could be asked.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/prerequisites.sh
source ci/prerequisites.sh

audited=${1:-build/venv-test/bin/python}
[ -x "$audited" ] || missing "$audited: run ci/test.sh first, or name an interpreter"
tools=$repository/build/venv-audit
make_venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "pip-audit>=2.9"
packages=$tools/installed.txt
# Ours is on no index, and local builds are not known by their versions.
"$audited" -m pip freeze --disable-pip-version-check --exclude rmm-uvm |
  sed -e '/ @ /d' -e 's/+cpu$//' >"$packages"
answer=$tools/answer.json
errors=$tools/errors.txt
rm -f "$answer"
"$tools/bin/pip-audit" --requirement "$packages" --no-deps --disable-pip --progress-spinner off \
  --format json --output "$answer" 2>"$errors" || true
"$tools/bin/python" - "$answer" "$errors" <<'PYTHON_END'
import json, pathlib, sys

path = pathlib.Path(sys.argv[1])
found = json.loads(path.read_text())["dependencies"] if path.exists() else []
asked = [each for each in found if "skip_reason" not in each]
wrong = [each for each in asked if each["vulns"]]
print(f"audit: {len(asked)} of {len(found)} packages are in the database, {len(wrong)} with known vulnerabilities")
for each in wrong:
    print(f"audit: {each['name']} {each['version']}: {', '.join(one['id'] for one in each['vulns'])}")
if not asked:
    said = pathlib.Path(sys.argv[2]).read_text().strip() or "pip-audit says nothing"
    print(f"audit: nothing could be asked: {said.splitlines()[-1]}")
sys.exit(2 if not asked else 1 if wrong else 0)
PYTHON_END
