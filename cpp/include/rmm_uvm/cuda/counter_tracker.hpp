// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/cuda/uvm_tools.hpp>
#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace rmm_uvm::cuda {

/** @brief A GPU UUID; none means all processors together. */
using processor_id = std::optional<std::array<std::uint8_t, 16>>;

/**
 * @brief Pages of this process that the kernel driver writes to: totals, or a queue.
 *
 * Wiped in a forked child. The driver has pinned them: were the child to share one, the next
 * write of the parent could leave the parent with a copy that nobody adds to any more.
 */
class counter_page {
 public:
  /** @param bytes whole pages, and a power of two of them */
  explicit counter_page(std::shared_ptr<system_calls> system,
                        std::size_t bytes = page_bytes) noexcept;
  ~counter_page();
  counter_page(counter_page&& other) noexcept;
  counter_page& operator=(counter_page&&)      = delete;
  counter_page(counter_page const&)            = delete;
  counter_page& operator=(counter_page const&) = delete;

  /** @brief Whether there is one. */
  [[nodiscard]] bool valid() const noexcept { return page_ != nullptr; }
  /** @brief Its address, for the kernel driver. */
  [[nodiscard]] std::uint64_t address() const noexcept
  {
    return reinterpret_cast<std::uint64_t>(page_);
  }
  /** @brief The same, for us. */
  [[nodiscard]] void* data() const noexcept { return page_; }
  /** @brief A total: one memory load. */
  [[nodiscard]] std::uint64_t total(uvm_tools::counter which) const noexcept
  {
    return __atomic_load_n(static_cast<std::uint64_t const*>(page_) + static_cast<unsigned>(which),
                           __ATOMIC_RELAXED);
  }

 private:
  std::shared_ptr<system_calls> system_;
  std::size_t bytes_;
  void* page_;
};

class counter_tracker;

/** @brief A tracker, or why there is none. */
struct opened_counter_tracker {
  std::unique_ptr<counter_tracker> tracker;  ///< null when not opened
  availability opened;
};

/**
 * @brief One tracker of the UVM kernel driver: counts for one address space, from now on.
 *
 * While it lives, the driver keeps the address space: of a process that has ended, its device
 * memory too. Reading is thread-safe and a memory load; `count` and `stop_counting` are not
 * thread-safe. In a forked child totals read as zeros, and the parent is left alone.
 */
class counter_tracker {
 public:
  /**
   * @brief Opens a tracker that counts nothing yet.
   * @param system kept
   * @param uvm_descriptor of this process, on /dev/nvidia-uvm; not kept
   * @param processor a GPU, or all together
   */
  [[nodiscard]] static opened_counter_tracker open(std::shared_ptr<system_calls> system,
                                                   int uvm_descriptor,
                                                   processor_id const& processor);

  /** @brief Begins to count. @param flags of `uvm_tools::flag` */
  [[nodiscard]] availability count(std::uint64_t flags);
  /** @brief Ends it; totals stay. */
  void stop_counting(std::uint64_t flags) noexcept;
  /** @brief A total since the tracker was opened; zero in a forked child. */
  [[nodiscard]] std::uint64_t total(uvm_tools::counter which) const noexcept
  {
    return page_.total(which);
  }

 private:
  counter_tracker(descriptor tools, counter_page page, std::shared_ptr<system_calls> system);

  std::shared_ptr<system_calls> system_;
  int owner_;  // the process that opened it
  counter_page page_;
  descriptor tools_;  // after the page: closing it ends the counting, and must come first
};

/** @brief Whether /dev/nvidia-uvm-tools can be opened here, and if not, why. */
[[nodiscard]] availability tools_available(std::shared_ptr<system_calls> const& system);

}  // namespace rmm_uvm::cuda
