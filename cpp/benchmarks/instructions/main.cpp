// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Work on the hot paths for callgrind; ci/check_instructions.sh builds, runs and judges it.
#include "paths.hpp"

int main()
{
  rmm_uvm::benchmarks::count_allocations();
  rmm_uvm::benchmarks::count_budgets();
  rmm_uvm::benchmarks::count_traces();
  rmm_uvm::benchmarks::count_replays();
  return 0;
}
