// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>

#include <cstddef>

namespace rmm_uvm {

/** @brief Bytes of whole blocks that a round of a program needs on the device. */
struct live_blocks {
  std::size_t now{0};
  std::size_t peak{0};  ///< the most since somebody asked before; at least `now`
};

/** @brief What a residency manager keeps to answer that, once somebody has asked. */
struct live_block_watch {
  bool asked{false};
  std::size_t peak{0};             ///< since then
  std::size_t allocated_bytes{0};  ///< since it was looked at last
  use_tick round{never_used};      ///< when the last round began
  use_tick before{never_used};     ///< when the one before it did
};

}  // namespace rmm_uvm
