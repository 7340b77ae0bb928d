// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/counter_tracker.hpp>
#include <rmm_uvm/cuda/system_calls.hpp>
#include <rmm_uvm/cuda/uvm_tools.hpp>
#include <rmm_uvm/driver/move_queue.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {

/**
 * @brief The UVM kernel driver's own queue of migrations, of one address space and one device.
 *
 * Measured on an H100: a kernel that does nothing but fault takes 3.3 times as long while a window
 * is open, prefetches as long as without. The kernel driver enters a move once its copy is done.
 */
class kernel_moves final : public move_queue {
 public:
  /**
   * @brief Opens it for the device of a driver, closed, and moves 2 MiB to see that it works.
   *
   * The self-test has to see exactly these pages, asked for by somebody, and finds the device's
   * number by them. An unknown layout therefore means unavailable, never wrong figures.
   * @param driver works already
   * @param system kept
   */
  [[nodiscard]] static opened_move_queue open(
    uvm_driver& driver, std::shared_ptr<system_calls> const& system = linux_system_calls());

  [[nodiscard]] availability begin() override;
  std::uint64_t end(std::vector<seen_move>& moves) override;

 private:
  kernel_moves(std::shared_ptr<system_calls> system,
               int uvm_descriptor,
               counter_page control,
               counter_page entries,
               descriptor tools) noexcept;

  [[nodiscard]] static opened_move_queue open_on(uvm_driver& driver,
                                                 std::shared_ptr<system_calls> const& system,
                                                 int uvm_descriptor);
  [[nodiscard]] std::optional<std::string> self_test(uvm_driver& driver);
  void close_window() noexcept;
  [[nodiscard]] std::uint64_t take(std::vector<uvm_tools::migration_entry>& taken);
  void give_back(std::uint32_t next) noexcept;
  [[nodiscard]] bool in_child() const noexcept { return system_->process_id() != owner_; }
  [[nodiscard]] uvm_tools::queue_control* control() const noexcept
  {
    return static_cast<uvm_tools::queue_control*>(control_.data());
  }

  std::shared_ptr<system_calls> system_;
  int uvm_descriptor_;  // CUDA's, open for as long as the process uses CUDA
  int owner_;           // the process that opened it
  counter_page control_;
  counter_page entries_;
  descriptor tools_;          // after the pages: closing it ends their use, and must come first
  std::uint8_t device_{0};    // its number for the kernel driver
  std::uint64_t dropped_{0};  // that were counted until the last window
};

}  // namespace rmm_uvm::cuda
