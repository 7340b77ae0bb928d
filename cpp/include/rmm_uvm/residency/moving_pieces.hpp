// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/block_record.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

inline constexpr int no_neighbor = -1;

/** @brief A block that a request is about to bring. */
struct claimed_block {
  block_record* record{nullptr};
  memory_range range{};
  bool keeps{false};      // live contents: they must come with it
  bool empty{false};      // was discarded or never used: there is nothing to keep or to copy
  bool counted{false};    // was on the device, as of an epoch that has ended
  bool away{false};       // was evicted to the host
  bool first{false};      // of its slab
  int from{no_neighbor};  // the neighbour that it lay on, or `no_neighbor`
  bool mapped{false};     // it was used where it lay
  bool copied{false};     // on a neighbour, and had a copy on the host
  bool kept{false};       // the host keeps its copy
  bool renewed{false};    // its contents are dead, and nobody uses them: they are discarded first

  /** @brief Whether it was mapped or copied for us, which ends when it moves. */
  [[nodiscard]] bool ours_to_end() const noexcept
  {
    return mapped || (from != no_neighbor && copied);
  }
};

/** @brief Where blocks leave to, and how many of them. */
struct refuge {
  location where{};
  std::size_t number{0};  // of the neighbour
  std::size_t blocks{0};
};

/** @brief Pieces of a burst that come from the host by way of a neighbour. */
struct staged_pieces {
  location where{};
  std::size_t number{0};  // of the neighbour
  std::size_t claimed_bytes{0};
  std::vector<memory_range> pieces{};  // ascending
  static constexpr std::uint8_t went   = 1;
  static constexpr std::uint8_t failed = 2;
  std::vector<std::uint8_t> done{};  // each: nothing, `went` there, or `failed`
  std::atomic<bool> full{false};     // a piece failed: no more go there
};

}  // namespace rmm_uvm
