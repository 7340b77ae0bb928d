// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace rmm_uvm::ipc {

/**
 * @brief A descriptor that a forked child of this process closes before it does anything else.
 *
 * The child would keep the locks of its parent's open file, and say that the parent lives when it
 * does no more. Handlers of `fork` cannot be taken back: one for all objects, in a list of them.
 */
class forgotten_descriptor {
 public:
  explicit forgotten_descriptor(int descriptor) noexcept;
  ~forgotten_descriptor();
  forgotten_descriptor(forgotten_descriptor const&)            = delete;
  forgotten_descriptor& operator=(forgotten_descriptor const&) = delete;
  forgotten_descriptor(forgotten_descriptor&&)                 = delete;
  forgotten_descriptor& operator=(forgotten_descriptor&&)      = delete;

  /** @brief The descriptor; -1 in a child. */
  [[nodiscard]] int get() const noexcept { return descriptor_.load(); }
  /** @brief Whether this is the process that made it. */
  [[nodiscard]] bool here() const noexcept { return get() >= 0; }

 private:
  friend struct fork_handlers;
  std::atomic<int> descriptor_;
  forgotten_descriptor* next_{nullptr};
};

}  // namespace rmm_uvm::ipc
