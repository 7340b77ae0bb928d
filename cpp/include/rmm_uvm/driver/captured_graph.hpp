// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace rmm_uvm {

/** @brief A graph that a stream captures, or captured: it, and all that was instantiated from it.
 */
class captured_graph {
 public:
  explicit captured_graph(std::uint64_t number) noexcept : number_{number} {}

  /** @brief Of the capture; no other one of the process has it. */
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /** @brief Whether all of it is gone, and none of its work is under way. */
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }

  /** @brief Says so, on any thread. */
  void end() noexcept { ended_.store(true, std::memory_order_release); }

 private:
  std::uint64_t number_;
  std::atomic<bool> ended_{false};
};

}  // namespace rmm_uvm
