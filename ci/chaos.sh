#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs random programs over everything public at once, on simulated devices: docs/endurance.md.
#   ci/chaos.sh [SECONDS [SEED]]     default: 60 seconds, a new seed
# One seed after the other is tried, for so many seconds and at least one. Tests the installed
# package of PYTHON. What a seed found is told with the command that finds it again, and the status
# is 1; build/chaos keeps what it wrote, and a line for every seed.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"
readonly python

mkdir -p "$repository/build/chaos"
cd "$repository/build/chaos" # in the root Python would import the sources, which have no compiled part
exec nice "$python" -P -c '
import sys
sys.path.append(sys.argv[1])
from pathlib import Path
from tests.stateful.rounds import main
sys.exit(main(sys.argv[2:], Path.cwd()))
' "$repository" "$@"
