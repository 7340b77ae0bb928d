// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/process_mark.hpp>

#include <atomic>
#include <cstdlib>

namespace rmm_uvm::cuda {

/**
 * @brief Whether an object may still call CUDA.
 *
 * Not in a forked child: what was made in the parent is the parent's, and a descriptor of the
 * kernel driver would reach the parent's memory. A destructor not either once the process has begun
 * to exit: libcuda may have been taken down. The system takes everything back in both cases.
 */
class cuda_use {
 public:
  cuda_use() noexcept
  {
    // Registered after libcuda was loaded, and so run before it goes.
    [[maybe_unused]] static int const registered =
      std::atexit([]() noexcept { exiting().store(true, std::memory_order_release); });
  }

  /** @brief Whether this is the process that made the object; two loads. */
  [[nodiscard]] bool here() const noexcept { return process_.here(); }
  /** @brief A destructor may call CUDA here and now. */
  [[nodiscard]] bool allowed() const noexcept
  {
    return !exiting().load(std::memory_order_acquire) && here();
  }

 private:
  [[nodiscard]] static std::atomic<bool>& exiting() noexcept
  {
    static std::atomic<bool> value{false};
    return value;
  }

  process_mark process_;
};

}  // namespace rmm_uvm::cuda
