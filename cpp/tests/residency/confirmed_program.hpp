// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "residency_manager_fixture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm::tests {

/** @brief A program of which all that lives can be confirmed to be on the device. */
class ConfirmedProgram : public ResidencyManager {
 protected:
  /** @brief More was handed out than fits, and freed; blocks 8 to 13 are live, used, and there. */
  void make_with_six()
  {
    make();
    reuse(at(0, 8));
    free(0, 8);
    reuse(at(8, 6));
    touch(8, 6);
    come_and_go(2);
  }
  /** @brief Blocks are handed out and freed, now these, now those, which puts marks in the stream.
   */
  void come_and_go(int times)
  {
    for (int time = 0; time < times; ++time) {
      auto const block = static_cast<std::size_t>(16 + came_++ % 4);
      reuse(at(block));
      free(block, 1);
      manager->run_pending();
    }
  }
  /** @brief How often the program's stream was waited for. */
  [[nodiscard]] std::ptrdiff_t waits()
  {
    auto const made = driver->take_calls("synchronize");
    return std::count_if(
      made.begin(), made.end(), [this](auto const& each) { return each.stream == stream; });
  }
  [[nodiscard]] std::uint64_t evicted_bytes() const { return manager->statistics().evicted_bytes; }

  int came_{0};
};

}  // namespace rmm_uvm::tests
