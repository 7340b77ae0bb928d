#!/bin/bash
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs both packages and runs the mortgage pipeline with several memories, on a simulated device.
# Needs no GPU.
#   ci/demo.sh [ARGUMENT...]     arguments of `rmm-uvm mortgage`; default: --compare
set -euo pipefail
# shellcheck source=ci/prerequisites.sh
source "$(dirname "${BASH_SOURCE[0]}")/prerequisites.sh"

check_prerequisites
make_environment demo
[ $# -gt 0 ] || set -- --compare
exec "$environment/bin/rmm-uvm" mortgage "$@"
