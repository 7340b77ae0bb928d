// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Runs `work(index)` on `count` threads that start together, and waits for all. */
inline void on_threads(std::size_t count, std::function<void(std::size_t index)> const& work)
{
  std::latch start{static_cast<std::ptrdiff_t>(count)};
  std::vector<std::jthread> threads;
  for (std::size_t index = 0; index < count; ++index) {
    threads.emplace_back([&, index] {
      start.arrive_and_wait();
      work(index);
    });
  }
}

}  // namespace rmm_uvm::tests
