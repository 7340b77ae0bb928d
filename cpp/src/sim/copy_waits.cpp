// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/copy_waits.hpp>

namespace rmm_uvm::sim {

copy_waits::copy_waits(model_config const& config, timeline& time, program_clocks const& clocks)
  : lanes_{config.lanes > 1},
    programs_{config.programs},
    timeline_{time},
    clocks_{clocks},
    left_ns_(config.gpus * programs_)
{
}

}  // namespace rmm_uvm::sim
