// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/system_calls.hpp>
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
 * @brief Opens the UVM kernel driver's own counters for this process and one device.
 *
 * A tracker on /dev/nvidia-uvm-tools (see uvm_tools.hpp) bound to the process' /dev/nvidia-uvm
 * descriptor and the GPU's UUID. Measured cost: 5 % of a kernel that does nothing but fault, 10 %
 * with faults counted, otherwise none. GPU faults are those of the device, one for each page that
 * is fetched; CPU faults are those of the whole process, on every device the same.
 *
 * Self-test: 2 MiB are moved to the device and back, and both totals must rise by exactly that. An
 * unknown layout therefore means unavailable, never wrong figures.
 *
 * A forked child reads zeros and is told that they are not available; it cannot disturb the parent.
 * @param driver works already; used for the self-test on its device
 * @param system kept
 * @return never null; `no_counters` with the reason when they cannot be had
 */
[[nodiscard]] std::unique_ptr<migration_counters> open_kernel_counters(
  uvm_driver& driver, std::shared_ptr<system_calls> const& system = linux_system_calls());

}  // namespace rmm_uvm::cuda
