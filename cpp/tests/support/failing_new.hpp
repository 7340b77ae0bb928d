// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

namespace rmm_uvm::tests {

/**
 * @brief Lets the `nth` use of `operator new` on this thread throw, once, while it lives.
 *
 * Linked into one test executable only: it replaces the global operators there.
 */
class failing_new {
 public:
  /** @param nth 0 is the next one */
  explicit failing_new(std::size_t nth) noexcept;
  ~failing_new();
  failing_new(failing_new const&)            = delete;
  failing_new& operator=(failing_new const&) = delete;
  failing_new(failing_new&&)                 = delete;
  failing_new& operator=(failing_new&&)      = delete;

  /** @brief Whether it has thrown. */
  [[nodiscard]] static bool has_failed() noexcept;
};

/**
 * @brief Lets the 1st, 2nd, ... use of `operator new` fail in turn, until there is none that does.
 * @param course of a test, given which one fails; returns whether `failing_new` had nothing to fail
 * @return how many failed
 */
template <typename Course>
[[nodiscard]] std::size_t failures_of(Course const& course)
{
  constexpr std::size_t most = 100;  // far more than any of them uses
  std::size_t nth            = 0;
  while (nth < most && !course(nth)) {
    ++nth;
  }
  EXPECT_LT(nth, most);
  return nth;
}

}  // namespace rmm_uvm::tests
