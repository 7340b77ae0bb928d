// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "lock_waits.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace rmm_uvm::benchmarks {
namespace {

/** @brief Adds the time of its life to a count. */
class stopwatch {
 public:
  explicit stopwatch(std::uint64_t& total_ns) : total_ns_{total_ns} {}
  stopwatch(stopwatch const&)            = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  stopwatch(stopwatch&&)                 = delete;
  stopwatch& operator=(stopwatch&&)      = delete;
  ~stopwatch()
  {
    auto const spent = std::chrono::steady_clock::now() - begun_;
    total_ns_ += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }

 private:
  std::uint64_t& total_ns_;
  std::chrono::steady_clock::time_point begun_{std::chrono::steady_clock::now()};
};

}  // namespace

lock_waits& waits_of_this_thread() noexcept
{
  thread_local lock_waits waits;
  return waits;
}

}  // namespace rmm_uvm::benchmarks

// The names are the linker's: `--wrap=SYMBOL` sends calls of SYMBOL to __wrap_SYMBOL, and
// __real_SYMBOL is what it was.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_sched_yield();
void __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
  std::condition_variable* condition, std::unique_lock<std::mutex>* lock);

// Who finds a lock taken tries it again and again for a while, and lets others run in between.
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex)
{
  auto& waits      = rmm_uvm::benchmarks::waits_of_this_thread();
  auto const taken = __real_pthread_mutex_trylock(mutex);
  if (taken != 0 && !waits.trying) { ++waits.contended; }
  if (taken == 0) { ++waits.locked; }
  waits.trying = taken != 0;
  return taken;
}

int __wrap_sched_yield()
{
  rmm_uvm::benchmarks::stopwatch const waiting{
    rmm_uvm::benchmarks::waits_of_this_thread().mutex_ns};
  return __real_sched_yield();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex)
{
  auto& waits = rmm_uvm::benchmarks::waits_of_this_thread();
  if (__wrap_pthread_mutex_trylock(mutex) == 0) { return 0; }
  waits.trying = false;
  ++waits.locked;
  rmm_uvm::benchmarks::stopwatch const waiting{waits.mutex_ns};
  return __real_pthread_mutex_lock(mutex);
}

void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
  std::condition_variable* condition, std::unique_lock<std::mutex>* lock)
{
  auto& waits = rmm_uvm::benchmarks::waits_of_this_thread();
  rmm_uvm::benchmarks::stopwatch const waiting{waits.condition_ns};
  __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(condition, lock);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
