// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief What waits for copies where programs have lanes.
 *
 * What comes waits for what left, and who uses it for what comes. Holds copies of the timeline;
 * reads clocks; knows blocks by number only.
 */
class copy_waits {
 public:
  copy_waits(model_config const& config, timeline& time, program_clocks const& clocks);

  /** @brief Has the next copy of a block to a GPU wait for all that left it, and for the block. */
  void wait_for_room(std::uint32_t block, unsigned gpu)
  {
    if (!lanes_) { return; }
    // Room may have been made in another lane of the program, and for this; so all of it is waited
    // for. Not what others had leave: their clocks are elsewhere.
    timeline_.hold_next_copy(std::max(left_ns_[index(gpu)], arrival_ns(block)));
  }
  /** @brief The operation's copies from a GPU were issued. */
  void note_departure(unsigned gpu) noexcept
  {
    if (!lanes_) { return; }
    auto& left_ns = left_ns_[index(gpu)];
    left_ns       = std::max(left_ns, timeline_.copied_ns());
  }
  /** @brief The operation's copies to a block were issued. @throws std::bad_alloc */
  void note_arrival(std::uint32_t block)
  {
    if (lanes_) { enter_arrival(block); }
  }
  /** @brief Whether any arrival was noted that may not be over. */
  [[nodiscard]] bool any_arrival() const noexcept { return !arrivals_.empty(); }
  /** @brief When a block is there; 0 when nobody noted one. */
  [[nodiscard]] double arrival_ns(std::uint32_t block) const noexcept
  {
    auto const it = arrivals_.find(block);
    return it == arrivals_.end() ? 0 : it->second;
  }
  /** @brief A block is no more. */
  void forget(std::uint32_t block) noexcept { arrivals_.erase(block); }

 private:
  [[nodiscard]] std::size_t index(unsigned gpu) const noexcept
  {
    return std::size_t{gpu} * programs_ + clocks_.program();
  }
  void enter_arrival(std::uint32_t block);

  bool lanes_;  // that there are several of a program
  std::size_t programs_;
  timeline& timeline_;
  program_clocks const& clocks_;
  std::vector<double> left_ns_;  // by GPU, then program: when what left has left
  std::unordered_map<std::uint32_t, double> arrivals_;  // of blocks, when they are not over
};

}  // namespace rmm_uvm::sim
