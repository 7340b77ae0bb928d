// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/fake_clock.hpp>
#include <rmm_uvm/monitor/steady_clock.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace rmm_uvm::monitor {

std::uint64_t steady_clock::now_ns() noexcept
{
  auto const since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

bool steady_clock::sleep_until(std::uint64_t deadline_ns,
                               std::atomic<bool> const& cancelled) noexcept
{
  // The library's own arithmetic is signed: a deadline beyond its range is one that never comes.
  constexpr auto latest = std::numeric_limits<std::chrono::nanoseconds::rep>::max();
  auto const deadline   = std::chrono::steady_clock::time_point{std::chrono::nanoseconds{
    static_cast<std::chrono::nanoseconds::rep>(std::min(deadline_ns, std::uint64_t{latest}))}};
  std::unique_lock lock{mutex_};
  return !woken_.wait_until(lock, deadline, [&] { return cancelled.load(); });
}

void steady_clock::wake() noexcept
{
  // Under the lock: a sleeper that has just looked at its flag must be waiting when this comes.
  std::lock_guard const lock{mutex_};
  woken_.notify_all();
}

void fake_clock::advance(std::uint64_t ns) noexcept
{
  std::lock_guard const lock{mutex_};
  now_ns_ += ns;
  woken_.notify_all();
}

std::uint64_t fake_clock::now_ns() noexcept
{
  std::lock_guard const lock{mutex_};
  return now_ns_;
}

bool fake_clock::sleep_until(std::uint64_t deadline_ns, std::atomic<bool> const& cancelled) noexcept
{
  std::unique_lock lock{mutex_};
  woken_.wait(lock, [&] { return cancelled.load() || now_ns_ >= deadline_ns; });
  return !cancelled.load();
}

void fake_clock::wake() noexcept
{
  std::lock_guard const lock{mutex_};
  woken_.notify_all();
}

}  // namespace rmm_uvm::monitor
