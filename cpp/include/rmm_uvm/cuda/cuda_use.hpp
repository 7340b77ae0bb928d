// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace rmm_uvm::cuda {

/**
 * @brief Whether a destructor may still call CUDA.
 *
 * Not once the process has begun to exit: libcuda may have been taken down. Not in a forked child:
 * what was made in the parent is the parent's. The system takes everything back in both cases.
 */
class cuda_use {
 public:
  cuda_use() noexcept
  {
    // Registered after libcuda was loaded, and so run before it goes.
    [[maybe_unused]] static int const registered =
      std::atexit([]() noexcept { exiting().store(true, std::memory_order_release); });
  }

  /** @brief CUDA may be called here and now. */
  [[nodiscard]] bool allowed() const noexcept
  {
    return !exiting().load(std::memory_order_acquire) && process_ == ::getpid();
  }

 private:
  [[nodiscard]] static std::atomic<bool>& exiting() noexcept
  {
    static std::atomic<bool> value{false};
    return value;
  }

  pid_t process_{::getpid()};
};

}  // namespace rmm_uvm::cuda
