// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/link_measuring.hpp>

#include <algorithm>

namespace rmm_uvm {
namespace {

/** @brief What can be moved without driving anybody's memory out; 0 where it cannot be told. */
[[nodiscard]] std::size_t free_bytes(uvm_driver& driver, int device_id) noexcept
{
  device_memory own;
  if (!driver.memory(own).ok()) { return 0; }
  if (device_id == location::host_id) { return own.free_bytes; }
  device_memory there;
  if (!driver.neighbor_memory(device_id, there).ok()) { return 0; }
  return std::min(own.free_bytes, there.free_bytes);
}

}  // namespace

status measure_links(uvm_driver& driver,
                     managed_account& account,
                     int device_id,
                     link_rates& rates) noexcept
{
  auto const most = free_bytes(driver, device_id);
  for (auto bytes = link_measuring_bytes; bytes >= least_link_measuring_bytes; bytes /= 2) {
    if (bytes > most || !account.try_reserve(bytes)) { continue; }
    auto const measured = driver.measure_links(device_id, bytes, rates);
    account.release(bytes);
    return measured;
  }
  return {status_code::out_of_memory, 0, "measure_links"};
}

}  // namespace rmm_uvm
