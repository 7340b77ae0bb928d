// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>

#include <cstddef>
#include <map>

namespace rmm_uvm::tests {

using traffic_bytes = std::map<traffic, std::size_t>;

/** @brief Adds up what it is told of moves. */
class traffic_sums final : public memory_observer {
 public:
  traffic_bytes bytes;
  void allocated(int, memory_range, stream_handle) noexcept override {}
  void freed(int, memory_range, stream_handle) noexcept override {}
  void touched(int, memory_range, bool, bool) noexcept override {}
  void moved(memory_range, std::size_t moved_bytes, traffic what) noexcept override
  {
    bytes[what] += moved_bytes;
  }
};

}  // namespace rmm_uvm::tests
