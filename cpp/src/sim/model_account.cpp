// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/model_account.hpp>

namespace rmm_uvm::sim {

model_account::model_account(model_config const& config, block_table const& blocks)
  : blocks_{blocks},
    several_{config.programs > 1},
    of_programs_(several_ ? config.programs : 0),
    gpus_(config.gpus)
{
  for (auto& gpu : gpus_) {
    gpu.of_programs.resize(of_programs_.size());
  }
}

}  // namespace rmm_uvm::sim
