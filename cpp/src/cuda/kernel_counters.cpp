// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/address_space_counters.hpp>
#include <rmm_uvm/cuda/kernel_counters.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

class kernel_counters final : public migration_counters {
 public:
  kernel_counters(std::shared_ptr<system_calls> system,
                  std::unique_ptr<address_space_counters> counters,
                  int uvm_descriptor)
    : system_{std::move(system)},
      counters_{std::move(counters)},
      uvm_descriptor_{uvm_descriptor},
      owner_{system_->process_id()}
  {
  }
  [[nodiscard]] availability available() const override
  {
    if (in_child()) {
      return availability::no("the counters belong to the process that this one was forked from");
    }
    return availability::yes();
  }
  [[nodiscard]] migration_totals read() const noexcept override { return counters_->read(); }
  [[nodiscard]] availability request_faults() const override
  {
    // Before the lock, which another thread may have held at the moment of the fork.
    if (in_child()) { return available(); }
    std::lock_guard const lock{mutex_};
    if (fault_requests_ == 0) {
      if (auto counted = counters_->count_faults(uvm_descriptor_); !counted.available) {
        return counted;
      }
    }
    ++fault_requests_;
    return availability::yes();
  }
  void release_faults() const noexcept override
  {
    if (in_child()) { return; }
    std::lock_guard const lock{mutex_};
    if (fault_requests_ == 0) { return; }
    --fault_requests_;
    if (fault_requests_ == 0) { counters_->stop_faults(); }
  }

 private:
  [[nodiscard]] bool in_child() const noexcept { return system_->process_id() != owner_; }

  std::shared_ptr<system_calls> system_;
  std::unique_ptr<address_space_counters> counters_;
  int uvm_descriptor_;  // CUDA's, open for as long as the process uses CUDA
  int owner_;
  mutable ranked_mutex<lock_rank::counters> mutex_;
  mutable unsigned fault_requests_{0};
};

/** @brief How often the self-test may move its block before it gives up; see there. */
constexpr int self_test_readings = 3;

/**
 * @brief Moves one block to the device and back; both totals must rise by exactly its size.
 *
 * On a full device the first round evicts another block, whose bytes count too; the block then
 * keeps its device memory, and the second round is clean. A round may also meet traffic of others.
 */
[[nodiscard]] std::optional<std::string> self_test(uvm_driver& driver,
                                                   kernel_counters const& counters)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  auto const device = location::device(driver.info().device_id);
  std::memset(reinterpret_cast<void*>(address), 1, va_block_bytes);  // pages now live on the host
  std::optional<std::string> failure;
  for (int round = 0; round < self_test_readings; ++round) {
    auto const before = counters.read();
    bool const moved =
      driver.prefetch(block, device, nullptr).ok() && driver.synchronize(nullptr).ok() &&
      driver.prefetch(block, location::host(), nullptr).ok() && driver.synchronize(nullptr).ok();
    auto const after = counters.read();
    if (!moved) {
      failure = "the self-test could not move managed memory";
      break;
    }
    auto const to_device = after.host_to_device_bytes - before.host_to_device_bytes;
    auto const to_host   = after.device_to_host_bytes - before.device_to_host_bytes;
    if (to_device == va_block_bytes && to_host == va_block_bytes) {
      failure.reset();
      break;
    }
    failure = "the self-test moved " + std::to_string(va_block_bytes) +
              " bytes each way and read " + std::to_string(to_device) + " and " +
              std::to_string(to_host) +
              ": unknown layout of the UVM kernel driver, or traffic of others";
  }
  static_cast<void>(driver.free_managed(address));
  return failure;
}

}  // namespace

std::unique_ptr<migration_counters> open_kernel_counters(
  uvm_driver& driver, std::shared_ptr<system_calls> const& system)
{
  if (!driver.info().concurrent_managed_access.available) {
    return std::make_unique<no_counters>("without concurrent managed access nothing migrates");
  }
  std::vector<system_calls::open_file> files;
  if (auto const error = system->list_files(system->process_id(), files); error < 0) {
    return std::make_unique<no_counters>(
      std::string{"the descriptors of this process cannot be listed: "} + std::strerror(-error));
  }
  std::string reason = "this process has no /dev/nvidia-uvm descriptor";
  // There may be two descriptors; only one belongs to the address space, and the self-test tells.
  for (auto const& file : files) {
    if (file.target != uvm_tools::device_path) { continue; }
    auto opened = address_space_counters::open(system, file.number, driver.info().uuid);
    if (!opened.counters) {
      reason = opened.opened.reason;
      continue;
    }
    auto counters =
      std::make_unique<kernel_counters>(system, std::move(opened.counters), file.number);
    auto const failure = self_test(driver, *counters);
    if (!failure) { return counters; }
    reason = *failure;
  }
  return std::make_unique<no_counters>(reason);
}

}  // namespace rmm_uvm::cuda
