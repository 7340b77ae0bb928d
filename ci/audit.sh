#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Asks which of the installed packages have known vulnerabilities.
#   ci/audit.sh [PYTHON]                     asks PyPI, over the network, with pip-audit
#   ci/audit.sh --advisories FILE [PYTHON]   asks a file, without a network (ci/audit_file.py), also
#                                            about the lowest versions that pyproject.toml allows
# PYTHON has the packages; by default that of the environment that ci/test.sh made, build/venv-test.
# FILE is a copy of data/insecure.json of https://github.com/pyupio/safety-db.
# Not part of CI: PyPI's database is another service than its packages, and what both say changes
# without a change here. docs/understand/security.md has the last result. Exit status 1 if there is any, 2 if
# nothing could be asked.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"

nothing() {
  echo "audit: nothing could be asked: $1"
  exit 2
}

advisories=
if [ "${1:-}" = --advisories ]; then
  [ -n "${2:-}" ] || nothing "--advisories needs a file, a copy of safety-db's data/insecure.json"
  advisories=$2
  shift 2
fi
[ $# -le 1 ] || nothing "too many arguments: ci/audit.sh [--advisories FILE] [PYTHON]"
audited=${1:-$repository/build/venv-test/bin/python}
[ -x "$audited" ] || nothing "there is no $audited: run ci/test.sh first, or name an interpreter"
# -P: what lies beside the script is not installed.
[ -z "$advisories" ] || exec "$audited" -P "$repository/ci/audit_file.py" "$advisories"

tools=$repository/build/venv-audit
make_venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "pip-audit>=2.9" ||
  nothing "pip-audit cannot be installed"
packages=$tools/installed.txt
# Ours is on no index, and local builds are not known by their versions.
"$audited" -m pip freeze --disable-pip-version-check --exclude rmm-uvm \
  --exclude rmm-uvm-mortgage |
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
    # pip-audit that skipped every package says that it found nothing.
    said = found[0]["skip_reason"] if found else pathlib.Path(sys.argv[2]).read_text().strip()
    print(f"audit: nothing could be asked: {(said or 'pip-audit says nothing').splitlines()[-1]}")
sys.exit(2 if not asked else 1 if wrong else 0)
PYTHON_END
