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
      new direct_migration{system, file.number, driver.info().uuid}};
    auto const failure = self_test(driver, *migration);
    if (!failure) { return {std::move(migration), availability::yes()}; }
    reason = *failure;
  }
  return {nullptr, availability::no(reason)};
}

status direct_migration::migrate(memory_range range, location where) noexcept
{
  constexpr char const* call = "UVM_MIGRATE";
  uvm_migrate::parameters parameters;
  parameters.base        = range.address / page_bytes * page_bytes;
  auto const end         = (range.end() + page_bytes - 1) / page_bytes * page_bytes;
  parameters.length      = end - parameters.base;
  parameters.destination = where.is_host() ? uvm_migrate::host : device_;
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
