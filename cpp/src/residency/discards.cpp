// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/discards.hpp>

#include <mutex>

namespace rmm_uvm {
namespace {

/** @brief Makes a call in the stream of discards, which is idle before and after it. */
template <typename Call>
status on_an_idle_stream(uvm_driver& driver, Call const& call) noexcept
{
  stream_handle discards = nullptr;
  auto result            = driver.own_stream(own_stream_use::discards, discards);
  if (!result.ok()) { return result; }
  std::lock_guard const lock{driver.discarding()};
  // Idle already, unless the wait below failed once.
  result = driver.synchronize(discards);
  if (!result.ok()) { return result; }
  result            = call(discards);
  auto const waited = driver.synchronize(discards);
  return result.ok() ? waited : result;
}

}  // namespace

status discard_at_once(uvm_driver& driver, std::span<memory_range const> ranges) noexcept
{
  return on_an_idle_stream(
    driver, [&](stream_handle discards) { return driver.discard(ranges, discards); });
}

status renew_at_once(uvm_driver& driver, std::span<memory_range const> ranges) noexcept
{
  auto const here = location::device(driver.info().device_id);
  return on_an_idle_stream(driver, [&](stream_handle discards) {
    return driver.discard_and_prefetch(ranges, here, discards);
  });
}

}  // namespace rmm_uvm
