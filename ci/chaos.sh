#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs random programs over everything public at once, on simulated devices: docs/measure/endurance.md.
#   ci/chaos.sh [--gpu] [SECONDS [SEED]]     default: 60 seconds, a new seed
# With --gpu they run on the first GPU, under a cap: RMM_UVM_MANAGED_LIMIT=24GiB ci/chaos.sh --gpu
# One seed after the other is tried, for so many seconds and at least one. Tests the installed
# package of PYTHON. What a seed found is told with the command that finds it again, and the status
# is 1; build/chaos keeps what it wrote, and a line for every seed.
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"
readonly python
if [ "${1:-}" = --gpu ]; then
  [ -n "${RMM_UVM_MANAGED_LIMIT:-}" ] || missing "RMM_UVM_MANAGED_LIMIT, such as 24GiB, no more than the GPU has free"
fi

mkdir -p "$repository/build/chaos"
cd "$repository/build/chaos" # in the root Python would import the sources, which have no compiled part
exec nice "$python" -P -c '
import sys
sys.path.append(sys.argv[1])
from pathlib import Path
from tests.stateful.rounds import main
sys.exit(main(sys.argv[2:], Path.cwd()))
' "$repository" "$@"
