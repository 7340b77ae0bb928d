// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/copy_waits.hpp>

#include <cstddef>

namespace rmm_uvm::sim {
namespace {

/** @brief Arrivals that are noted before those that are over are forgotten. */
constexpr std::size_t most_arrivals = 16384;

}  // namespace

copy_waits::copy_waits(model_config const& config, timeline& time, program_clocks const& clocks)
  : lanes_{config.lanes > 1},
    programs_{config.programs},
    timeline_{time},
    clocks_{clocks},
    left_ns_(config.gpus * programs_)
{
}

void copy_waits::enter_arrival(std::uint32_t block)
{
  if (arrivals_.size() >= most_arrivals) {
    auto const now_ns = clocks_.lane_ns(0);
    std::erase_if(arrivals_, [now_ns](auto const& one) { return one.second <= now_ns; });
  }
  arrivals_[block] = timeline_.copied_ns();
}

}  // namespace rmm_uvm::sim
