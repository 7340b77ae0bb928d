// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Threads that work at once in tests of what they share. */
inline constexpr std::size_t thread_count = 8;

/** @brief So many rounds, or a fifth of them under the thread sanitizer, which makes them slow. */
[[nodiscard]] constexpr int rounds_of(int usual) noexcept
{
#ifdef __SANITIZE_THREAD__
  return usual / 5;
#else
  return usual;
#endif
}

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
