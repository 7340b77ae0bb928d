// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace rmm_uvm::tests
