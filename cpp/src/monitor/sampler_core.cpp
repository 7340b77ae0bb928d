// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "sampler_core.hpp"

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <utility>

namespace rmm_uvm::monitor {
namespace {

/** @brief How many times its patience with a sample `stop` waits for the thread. */
constexpr int patience_with_the_end = 5;
/** @brief Waits longer than this are in pieces: the library's clock arithmetic is finite. */
constexpr std::chrono::hours longest_wait{1'000};

[[nodiscard]] std::uint64_t thread_cpu_ns() noexcept
{
  timespec time{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) { return 0; }
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

sampler::core::core(std::vector<slot_settings> slots,
                    sampler_settings settings,
                    std::shared_ptr<clock> time)
  : settings_{settings},
    clock_{std::move(time)},
    ring_{settings.capacity},
    faults_(slots.size(), availability::no("the sampler was not started")),
    taken_(slots.size())
{
  for (auto& one : slots) {
    slots_.push_back(std::make_unique<slot>(std::move(one)));
  }
}

void sampler::core::start()
{
  std::lock_guard const lifecycle{lifecycle_mutex_};
  if (thread_.joinable()) { return; }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto granted = slots_[i]->request_faults();
    std::lock_guard const lock{mutex_};
    faults_[i] = std::move(granted);
  }
  std::uint64_t deadline_ns = clock_->now_ns();
  static_cast<void>(tick(deadline_ns));
  try {
    start_thread(deadline_ns);
  } catch (...) {
    release_faults();
    throw;
  }
}

void sampler::core::start_thread(std::uint64_t deadline_ns)
{
  auto mine = std::make_shared<run>();
  thread_   = own_thread{"rmm_uvm sample", [self = shared_from_this(), mine, deadline_ns] {
                         self->loop(*mine, deadline_ns);
                       }};
  run_      = std::move(mine);
  std::lock_guard const lock{mutex_};
  running_ = true;
}

void sampler::core::stop() noexcept
{
  std::lock_guard const lifecycle{lifecycle_mutex_};
  if (!thread_.joinable()) { return; }
  run_->cancelled = true;
  clock_->wake();
  bool ended = false;
  {
    std::unique_lock lock{mutex_};
    ended = changed_.wait_for(
      lock, patience_with_the_end * settings_.patience, [&] { return run_->ended; });
    running_ = false;
    changed_.notify_all();
  }
  // A thread that does not come back from its device keeps this object, and harms nobody.
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  release_faults();
}

void sampler::core::release_faults() noexcept
{
  for (auto const& one : slots_) {
    one->release_faults();
  }
}

void sampler::core::loop(run& mine, std::uint64_t deadline_ns) noexcept
{
  auto const earlier_ns = cost_ns_.load();
  while (clock_->sleep_until(deadline_ns, mine.cancelled)) {
    static_cast<void>(tick(deadline_ns));
    cost_ns_ = earlier_ns + thread_cpu_ns();
  }
  cost_ns_ = earlier_ns + thread_cpu_ns();
  std::lock_guard const lock{mutex_};
  mine.ended = true;
  changed_.notify_all();
}

std::uint64_t sampler::core::after(std::uint64_t deadline_ns, std::uint64_t now_ns) const noexcept
{
  auto const missed    = now_ns > deadline_ns ? (now_ns - deadline_ns) / settings_.interval_ns : 0;
  auto const last      = deadline_ns + missed * settings_.interval_ns;
  constexpr auto never = std::numeric_limits<std::uint64_t>::max();
  return last > never - settings_.interval_ns ? never : last + settings_.interval_ns;
}

bool sampler::core::tick() noexcept
{
  std::uint64_t deadline_ns = 0;
  return tick(deadline_ns);
}

bool sampler::core::tick(std::uint64_t& deadline_ns) noexcept
{
  {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, settings_.patience, [&] { return !ticking_; })) {
      deadline_ns = after(deadline_ns, clock_->now_ns());
      return false;
    }
    ticking_ = true;
    if (!began_) {
      began_    = true;
      began_ns_ = clock_->now_ns();
    }
  }
  auto const time_ns = clock_->now_ns() - began_ns_;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    taken_[i] = slots_[i]->take(time_ns);
  }
  std::lock_guard const lock{mutex_};
  // Before anybody can see the samples: whoever waited for them may advance a fake clock at once.
  deadline_ns = after(deadline_ns, clock_->now_ns());
  for (auto const& one : taken_) {
    ring_.push(one);
  }
  ticking_ = false;
  changed_.notify_all();
  return true;
}

std::unique_lock<ranked_mutex<lock_rank::sampler>> sampler::core::lock_to_read() const noexcept
{
  // In a forked process the mutex may be held by a thread that does not exist there.
  if (forked()) { return std::unique_lock{mutex_, std::try_to_lock}; }
  return std::unique_lock{mutex_};
}

bool sampler::core::running() const noexcept
{
  auto const lock = lock_to_read();
  return lock.owns_lock() && running_ && !forked();
}

slot* sampler::core::find(int device_id) const noexcept
{
  for (auto const& one : slots_) {
    if (one->device_id() == device_id) { return one.get(); }
  }
  return nullptr;
}

availability sampler::core::faults(int device_id) const
{
  auto const lock = lock_to_read();
  for (std::size_t i = 0; lock.owns_lock() && i < slots_.size(); ++i) {
    if (slots_[i]->device_id() == device_id) { return faults_[i]; }
  }
  return availability::no("device " + std::to_string(device_id) + " is not watched");
}

std::size_t sampler::core::count(std::uint64_t since) const noexcept
{
  auto const lock = lock_to_read();
  return lock.owns_lock() ? ring_.count(since) : 0;
}

ring_read sampler::core::read(std::uint64_t since, std::span<sample> into) const noexcept
{
  auto const lock = lock_to_read();
  return lock.owns_lock() ? ring_.read(since, into) : ring_read{since, 0};
}

std::uint64_t sampler::core::next_sequence() const noexcept
{
  auto const lock = lock_to_read();
  return lock.owns_lock() ? ring_.next_sequence() : 0;
}

bool sampler::core::wait(std::uint64_t sequence, std::chrono::nanoseconds timeout) const noexcept
{
  auto lock = lock_to_read();
  if (!lock.owns_lock()) { return false; }
  auto const taken = [&] { return ring_.next_sequence() > sequence; };
  if (forked()) { return taken(); }
  auto const patience = std::min<std::chrono::nanoseconds>(timeout, longest_wait);
  static_cast<void>(changed_.wait_for(lock, patience, [&] { return taken() || !running_; }));
  return taken();
}

void sampler::core::before_fork(std::chrono::steady_clock::time_point end) noexcept
{
  std::unique_lock lock{mutex_};
  auto const until = std::min<std::chrono::steady_clock::time_point>(
    end,
    std::chrono::steady_clock::now() +
      std::min<std::chrono::nanoseconds>(settings_.patience, longest_wait));
  // In vain on a device that hangs: then the child may find locks taken, as after any fork.
  changed_.wait_until(lock, until, [&] { return !ticking_; });
  static_cast<void>(lock.release());  // stays locked over the fork
}

}  // namespace rmm_uvm::monitor
