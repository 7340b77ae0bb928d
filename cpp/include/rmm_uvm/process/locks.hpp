// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#ifdef RMM_UVM_CHECK_LOCKS
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#endif

namespace rmm_uvm {

/**
 * @brief All locks of the C++ core, in the order in which one thread may take them.
 *
 * Who holds one may take those below it, and none above or beside it. `thread_gate` alone may be
 * held several times: a fork closes all gates, in their order. The turns of forks come before all
 * of these; see `fork_turn`.
 */
enum class lock_rank : std::uint8_t {
  thread_gate,        ///< `fork_gate`: the threads of budgets stand still during a fork
  sampler_lifecycle,  ///< a monitor's sampler starts and stops
  observers,          ///< `observer_slot`: who watches allocations is changed
  trace_events,       ///< `trace_writer`: events wait for their file
  trace_file,         ///< `trace_writer`: the file is written
  torch_answers,      ///< functions that torch's allocator calls
  segment_answers,    ///< `torch_segments`: what torch's allocator says is told in its order
  segments,           ///< `torch_segments`: what torch's allocator holds
  scarce,             ///< `pool_room`: one request at a time passes a pool's maximum
  slabs,              ///< `managed_residency`: slabs come and go, or the budget changes
  room,               ///< `arrivals`: one request at a time makes room
  advice,             ///< `memory_adviser`: the ledger says what the driver knows
  discards,           ///< `uvm_driver::discarding`: the stream of discards
  ledger,             ///< `residency_ledger`: blocks, and everything that a budget knows
  lender,             ///< `free_memory_lender`
  board,              ///< `harvest_board`: threads of this process that use the file
  pieces,             ///< `piece_movers`: lists of pieces that helpers join
  pool_slabs,         ///< `pool_room`: the slabs of a pool, and what of them is empty
  live_order,         ///< `live_allocations`: who puts them in order
  live_allocations,   ///< `live_allocations`: a shard of them
  large_allocations,  ///< `live_allocations`: those that are in order
  sampler,            ///< a sampler's samples
  slot_levels,        ///< `slot`: whose levels it reads
  event_switch,       ///< a driver's migration events start and stop
  event_session,      ///< CUPTI is joined and left
  event_records,      ///< CUPTI's records
  transfers,          ///< `device_transfers`: what is open
  staging,            ///< `cuda_transfers`: staged copies are issued
  neighbors,          ///< `cuda_driver`: what is known of other devices
  own_streams,        ///< `cuda_driver`: streams and marks of its own
  side_stream,        ///< `cuda_driver`: the detour of the legacy stream
  mappings,           ///< `mapping_cuts`: how many mappings memory has
  load,               ///< NVML
  direct_migration,   ///< migrations past libcuda
  counters,           ///< the kernel driver's counters of a process
  node,               ///< `simulated_node`: the model
  answers,            ///< `planned_answers` of a simulated device
  tally,              ///< `migration_tally`
  lines,              ///< `line_account`: whose memory moved
  failures,           ///< `prefetch_counts`: the last failure
  clock               ///< who waits for a clock
};

#ifdef RMM_UVM_CHECK_LOCKS

/** @brief The locks that a thread holds, by rank; ends the process when their order is broken. */
class held_locks {
 public:
  /** @brief Checks that a lock may be waited for. */
  static void check(lock_rank rank) noexcept
  {
    auto const own       = static_cast<std::size_t>(rank);
    bool const is_shared = rank == lock_rank::thread_gate;
    for (std::size_t other = is_shared ? own + 1 : own; other < counts.size(); ++other) {
      if (counts[other] == 0) { continue; }
      std::fprintf(stderr, "lock %zu is taken under lock %zu: see lock_rank\n", own, other);
      std::abort();
    }
  }
  static void add(lock_rank rank) noexcept { ++counts[static_cast<std::size_t>(rank)]; }
  static void remove(lock_rank rank) noexcept { --counts[static_cast<std::size_t>(rank)]; }

 private:
  static constexpr std::size_t ranks = static_cast<std::size_t>(lock_rank::clock) + 1;
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it is the thread's own
  static inline thread_local std::array<unsigned, ranks> counts{};
};

/** @brief A mutex that keeps its place in the order of locks: so the C++ tests are built. */
template <lock_rank rank>
class ranked_mutex {
 public:
  void lock()
  {
    held_locks::check(rank);
    mutex_.lock();
    held_locks::add(rank);
  }
  bool try_lock()
  {
    bool const taken = mutex_.try_lock();
    if (taken) { held_locks::add(rank); }
    return taken;
  }
  void unlock()
  {
    held_locks::remove(rank);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

/** @brief The same, which many may share. */
template <lock_rank rank>
class ranked_shared_mutex {
 public:
  void lock()
  {
    held_locks::check(rank);
    mutex_.lock();
    held_locks::add(rank);
  }
  void unlock()
  {
    held_locks::remove(rank);
    mutex_.unlock();
  }
  void lock_shared()
  {
    held_locks::check(rank);
    mutex_.lock_shared();
    held_locks::add(rank);
  }
  void unlock_shared()
  {
    held_locks::remove(rank);
    mutex_.unlock_shared();
  }

 private:
  std::shared_mutex mutex_;
};
using lock_condition = std::condition_variable_any;

/** @brief Checks that a lock may be waited for, where somebody tries for it first. */
inline void check_order(lock_rank rank) noexcept { held_locks::check(rank); }

#else

/** @brief A mutex with its place in the order of locks, which the C++ tests check. */
template <lock_rank rank>
using ranked_mutex = std::mutex;
/** @brief The same, which many may share. */
template <lock_rank rank>
using ranked_shared_mutex = std::shared_mutex;
/** @brief A condition that is waited for with such a mutex. */
using lock_condition = std::condition_variable;

/** @brief Checks nothing: the C++ tests do. */
inline void check_order(lock_rank /*rank*/) noexcept {}

#endif

}  // namespace rmm_uvm
