// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/direct_migration.hpp>
#include <rmm_uvm/cuda/uvm_tools.hpp>
#include <rmm_uvm/driver/migration_counters.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

constexpr std::uint32_t out_of_memory_status = 0x51;  // NV_ERR_NO_MEMORY
constexpr unsigned char pattern              = 0x5A;
constexpr int self_test_rounds               = 3;  // a round may meet traffic of others

[[nodiscard]] bool kept_its_contents(std::uintptr_t address)
{
  auto const* const bytes = reinterpret_cast<unsigned char const*>(address);
  return std::all_of(
    bytes, bytes + va_block_bytes, [](unsigned char byte) { return byte == pattern; });
}

/** @return what went wrong; nothing when the call does what it should */
[[nodiscard]] std::optional<std::string> self_test(uvm_driver& driver, direct_migration& migration)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  auto const device = location::device(driver.info().device_id);
  std::optional<std::string> failure;
  for (int round = 0; round < self_test_rounds; ++round) {
    std::memset(reinterpret_cast<void*>(address), pattern, va_block_bytes);  // now on the host
    auto const before = driver.counters().read();
    auto const there  = migration.migrate(block, device);
    auto const back   = migration.migrate(block, location::host());
    auto const after  = driver.counters().read();
    if (!there.ok() || !back.ok()) {
      failure = "the UVM kernel driver refused it (status " +
                std::to_string(there.ok() ? back.native_error : there.native_error) + ")";
      break;
    }
    auto const to_device = after.host_to_device_bytes - before.host_to_device_bytes;
    auto const to_host   = after.device_to_host_bytes - before.device_to_host_bytes;
    if (!kept_its_contents(address)) {
      failure = "the self-test lost contents";
      break;
    }
    if (to_device == va_block_bytes && to_host == va_block_bytes) {
      failure.reset();
      break;
    }
    failure = "the self-test asked for " + std::to_string(va_block_bytes) +
              " bytes each way, and " + std::to_string(to_device) + " and " +
              std::to_string(to_host) + " moved";
  }
  static_cast<void>(driver.free_managed(address));
  return failure;
}

/** @return what went wrong on the way to a neighbour and back; nothing when all is well */
[[nodiscard]] std::optional<std::string> neighbor_test(uvm_driver& driver,
                                                       direct_migration& migration,
                                                       int device_id)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  auto const here = location::device(driver.info().device_id);
  std::optional<std::string> failure;
  for (int round = 0; round < self_test_rounds; ++round) {
    std::memset(reinterpret_cast<void*>(address), pattern, va_block_bytes);  // now on the host
    auto const there  = migration.migrate(block, location::device(device_id));
    auto const before = driver.counters().read();
    auto const back   = migration.migrate(block, here);
    auto const after  = driver.counters().read();
    if (!there.ok() || !back.ok()) {
      failure = "the UVM kernel driver refused it (status " +
                std::to_string(there.ok() ? back.native_error : there.native_error) + ")";
      break;
    }
    bool const from_host =
      after.host_to_device_bytes - before.host_to_device_bytes >= va_block_bytes;
    if (!kept_its_contents(address)) {
      failure = "the self-test lost contents";
      break;
    }
    if (!from_host) {
      failure.reset();
      break;
    }
    failure = "pages did not get to device " + std::to_string(device_id);
  }
  static_cast<void>(driver.free_managed(address));
  return failure;
}

}  // namespace

opened_direct_migration direct_migration::open(uvm_driver& driver,
                                               std::shared_ptr<system_calls> const& system)
{
  if (auto const counted = driver.counters().available(); !counted.available) {
    return {nullptr, availability::no("its self-test needs counters: " + counted.reason)};
  }
  std::vector<system_calls::open_file> files;
  if (auto const error = system->list_files(system->process_id(), files); error < 0) {
    return {nullptr,
            availability::no(std::string{"the descriptors of this process cannot be listed: "} +
                             std::strerror(-error))};
  }
  std::string reason = "this process has no /dev/nvidia-uvm descriptor";
  for (auto const& file : files) {
    if (file.target != uvm_tools::device_path) { continue; }
    std::unique_ptr<direct_migration> migration{
      new direct_migration{system, file.number, driver.info()}};
    auto const failure = self_test(driver, *migration);
    if (!failure) { return {std::move(migration), availability::yes()}; }
    reason = *failure;
  }
  return {nullptr, availability::no(reason)};
}

bool direct_migration::reaches(location where) const noexcept
{
  if (where.is_host() || where.device_id == device_id_) { return true; }
  std::lock_guard const lock{mutex_};
  return others_.contains(where.device_id);
}

availability direct_migration::add(uvm_driver& driver,
                                   int device_id,
                                   std::array<std::uint8_t, 16> const& uuid)
{
  {
    std::lock_guard const lock{mutex_};
    others_.insert_or_assign(device_id, uuid);
  }
  auto const failure = neighbor_test(driver, *this, device_id);
  if (!failure) { return availability::yes(); }
  std::lock_guard const lock{mutex_};
  others_.erase(device_id);
  return availability::no(*failure);
}

status direct_migration::migrate(memory_range range, location where) noexcept
{
  constexpr char const* call = "UVM_MIGRATE";
  // The descriptor of a forked child reaches its parent's memory.
  if (!use_.here()) { return failed(status_code::driver_error, call); }
  uvm_migrate::parameters parameters;
  parameters.base        = range.address / page_bytes * page_bytes;
  auto const end         = (range.end() + page_bytes - 1) / page_bytes * page_bytes;
  parameters.length      = end - parameters.base;
  parameters.destination = where.is_host() ? uvm_migrate::host : device_;
  if (!where.is_host() && where.device_id != device_id_) {
    std::lock_guard const lock{mutex_};
    auto const found = others_.find(where.device_id);
    if (found == others_.end()) { return {status_code::invalid_value, 0, call}; }
    parameters.destination = found->second;
  }
  if (auto const error = system_->ioctl(descriptor_, uvm_migrate::request, &parameters);
      error != 0) {
    return {status_code::driver_error, -error, call};
  }
  if (parameters.status == 0) { return {}; }
  auto const code = parameters.status == out_of_memory_status ? status_code::out_of_memory
                                                              : status_code::driver_error;
  return {code, static_cast<int>(parameters.status), call};
}

}  // namespace rmm_uvm::cuda
