// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <memory>
#include <string>
#include <utility>

namespace rmm_uvm::cuda {

/** @brief Counters that do not work, with the reason. */
class no_counters final : public migration_counters {
 public:
  explicit no_counters(std::string reason) : state_{availability::no(std::move(reason))} {}
  [[nodiscard]] availability available() const override { return state_; }
  [[nodiscard]] migration_totals read() const noexcept override { return {}; }

 private:
  availability state_;
};

/**
 * @brief Opens the UVM kernel driver's own byte counters for this process and one device.
 *
 * Interface: NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia-uvm/uvm_ioctl.h and uvm_types.h
 * (580 and 595 alike): a tracker on /dev/nvidia-uvm-tools bound to the process' /dev/nvidia-uvm
 * descriptor and a GPU's UUID writes 64-bit totals into a page of ours. Measured cost: 5 % of a
 * kernel that does nothing but fault, otherwise none.
 *
 * Self-test: 2 MiB are moved to the device and back, and both totals must rise by exactly that. An
 * unknown layout therefore means unavailable, never wrong figures.
 * @param driver works already; used for the self-test on its device
 * @return never null; `no_counters` with the reason when they cannot be had
 */
[[nodiscard]] std::unique_ptr<migration_counters> open_kernel_counters(uvm_driver& driver);

}  // namespace rmm_uvm::cuda
