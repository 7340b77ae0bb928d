// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/model_config.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief What waits for copies.
 *
 * Who uses a block waits for what comes to it; where programs have lanes, what comes waits for what
 * left. Holds copies of the timeline; reads clocks; knows blocks by number only.
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
  /** @brief Makes room for so many blocks. @throws std::bad_alloc */
  void resize(std::size_t blocks) { arrivals_.resize(blocks); }
  /** @brief What the operation has copied or filled so far is on its way to a block. */
  void note_arrival(std::uint32_t block) noexcept { arrivals_[block] = timeline_.finish(); }
  /** @brief When what came to a block last is there; 0 when nothing did. */
  [[nodiscard]] double arrival_ns(std::uint32_t block) const noexcept { return arrivals_[block]; }
  /** @brief A block is no more. */
  void forget(std::uint32_t block) noexcept { arrivals_[block] = 0; }

 private:
  [[nodiscard]] std::size_t index(unsigned gpu) const noexcept
  {
    return std::size_t{gpu} * programs_ + clocks_.program();
  }

  bool lanes_;  // that there are several of a program
  std::size_t programs_;
  timeline& timeline_;
  program_clocks const& clocks_;
  std::vector<double> left_ns_;   // by GPU, then program: when what left has left
  std::vector<double> arrivals_;  // by block
};

}  // namespace rmm_uvm::sim
