// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Host time and lock waits of a budget: allocate, free and touch over a ledger of slabs, with a
// driver that does nothing. benchmarks/pool/ledger_cost.py builds, runs and judges it.
#include "lock_waits.hpp"
#include "no_op_driver.hpp"

#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using rmm_uvm::eviction_policy;
using rmm_uvm::memory_range;
using rmm_uvm::residency_ledger;
using rmm_uvm::residency_manager;
using rmm_uvm::residency_settings;
using rmm_uvm::stream_handle;
using rmm_uvm::use_event;
using rmm_uvm::use_kind;
using rmm_uvm::va_block_bytes;
using rmm_uvm::benchmarks::first_address;
using rmm_uvm::benchmarks::no_op_driver;
using rmm_uvm::benchmarks::waits_of_this_thread;

constexpr std::size_t gib        = std::size_t{1} << 30U;
constexpr std::size_t slab_bytes = gib;  // the ledger has many: a pool grows by slabs

/** @brief A budget and its ledger; everything may be handed out, and nothing is yet. */
struct kept_budget {
  kept_budget(std::size_t ledger_bytes, residency_settings const& settings)
  {
    for (std::size_t offset = 0; offset < ledger_bytes; offset += slab_bytes) {
      ledger.add_slab({first_address + offset, slab_bytes});
    }
    manager =
      std::make_unique<residency_manager>(std::make_shared<no_op_driver>(), ledger, settings);
  }

  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

[[nodiscard]] std::size_t argument(benchmark::State const& state, std::size_t which)
{
  return static_cast<std::size_t>(state.range(which));
}

/** @brief One thread allocates and frees so many blocks, each time the next ones. */
void allocate_free(benchmark::State& state)
{
  auto const bytes        = argument(state, 0) * va_block_bytes;
  auto const ledger_bytes = argument(state, 1) * gib;
  kept_budget kept{ledger_bytes, residency_settings::of(argument(state, 2) * gib / 2)};
  stream_handle const stream = nullptr;
  std::size_t offset         = 0;
  auto const turn            = [&] {
    memory_range const memory{first_address + offset, bytes};
    kept.manager->on_allocate(memory, stream);
    kept.manager->on_free(memory, stream);
    offset = (offset + bytes) % ledger_bytes;
  };
  // Until everything was there once: what is measured goes on for ever.
  for (std::size_t round = 0; round < ledger_bytes / bytes; ++round) {
    turn();
  }
  for ([[maybe_unused]] auto const each : state) {
    turn();
  }
}

/**
 * @brief One thread uses all of what is live in turn, so many blocks at once.
 *
 * What was used longest ago leaves, so that each use makes room for all of itself. A policy that
 * remembers uses spares half of that, as long as it remembers them all: 65,536.
 */
void use_in_turn(benchmark::State& state)
{
  auto const bytes        = argument(state, 0) * va_block_bytes;
  auto const ledger_bytes = argument(state, 1) * gib;
  auto settings           = residency_settings::of(argument(state, 2) * gib / 2);
  settings.policy         = eviction_policy::lru;
  kept_budget kept{ledger_bytes, settings};
  for (std::size_t offset = 0; offset < ledger_bytes; offset += bytes) {
    kept.manager->on_allocate({first_address + offset, bytes}, nullptr);
  }
  std::size_t offset = 0;
  auto const turn    = [&] {
    use_event const use{use_kind::touch, {first_address + offset, bytes}, first_address + offset};
    kept.manager->on_touch({&use, 1}, nullptr);
    offset = (offset + bytes) % ledger_bytes;
  };
  for (std::size_t round = 0; round < ledger_bytes / bytes; ++round) {
    turn();
  }
  auto const before = kept.manager->statistics().evicted_bytes;
  for ([[maybe_unused]] auto const each : state) {
    turn();
  }
  auto const evicted = static_cast<double>(kept.manager->statistics().evicted_bytes - before);
  state.counters["evicted_a_use"] =
    evicted / static_cast<double>(state.iterations()) / static_cast<double>(bytes);
}

/** @brief What one thread of a program does: it goes round its own memory, most of it live. */
class worker {
 public:
  static constexpr std::size_t calls_a_turn = 5;

  worker(residency_manager& manager, std::uintptr_t memory, std::size_t bytes)
    : manager_{manager}, memory_{memory}, places_{bytes / large_bytes - 1}
  {
    for (std::size_t each = 0; each < places_ - places_ / 4; ++each) {
      manager_.on_allocate(place(each), stream_);
    }
    next_ = places_ - places_ / 4;
  }

  /** @brief Until all of it was there once: what comes then goes on for ever. */
  void go_round_once()
  {
    for (std::size_t each = 0; each < places_; ++each) {
      turn();
    }
  }

  /** @brief Small memory, handed out and taken back; large memory for older; a use of live. */
  void turn()
  {
    memory_range const small{memory_ + places_ * large_bytes, small_bytes};
    manager_.on_allocate(small, stream_);
    manager_.on_free(small, stream_);
    manager_.on_free(place(next_ + places_ / 4), stream_);
    manager_.on_allocate(place(next_), stream_);
    auto const used = place(next_ + 3 * places_ / 8);  // it is away, and soon to be freed
    use_event const use{use_kind::touch, used, used.address};
    manager_.on_touch({&use, 1}, stream_);
    ++next_;
  }

 private:
  static constexpr std::size_t small_bytes = 4096;
  static constexpr std::size_t large_bytes = 8 * va_block_bytes;

  [[nodiscard]] memory_range place(std::size_t number) const
  {
    return {memory_ + number % places_ * large_bytes, large_bytes};
  }

  residency_manager& manager_;
  std::uintptr_t memory_;
  std::size_t places_;
  std::size_t next_{0};
  stream_handle stream_{nullptr};
};

constexpr std::size_t used_bytes = 8 * gib;  // by all threads together, however many

/** @brief What the threads of a run share. */
[[nodiscard]] std::unique_ptr<kept_budget>& shared_budget()
{
  static std::unique_ptr<kept_budget> kept;
  return kept;
}

void make_shared_budget(benchmark::State const& state)
{
  shared_budget() = std::make_unique<kept_budget>(argument(state, 0) * gib,
                                                  residency_settings::of(argument(state, 1) * gib));
}

void forget_shared_budget(benchmark::State const&) { shared_budget().reset(); }

[[nodiscard]] double share(std::uint64_t part, std::uint64_t whole)
{
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/** @brief Several threads, each with memory of its own. */
void threads(benchmark::State& state)
{
  auto const count  = static_cast<std::size_t>(state.threads());
  auto const number = static_cast<std::size_t>(state.thread_index());
  auto& manager     = *shared_budget()->manager;
  worker mine{
    manager, first_address + argument(state, 0) * gib / count * number, used_bytes / count};
  mine.go_round_once();
  auto const before      = manager.statistics();
  waits_of_this_thread() = {};
  std::chrono::steady_clock::time_point begun;
  bool running = false;
  for ([[maybe_unused]] auto const each : state) {
    if (!running) {  // behind the barrier that the loop begins with
      begun   = std::chrono::steady_clock::now();
      running = true;
    }
    mine.turn();
  }
  auto const spent_ns = static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begun)
      .count());
  auto const waits    = waits_of_this_thread();
  auto const now      = manager.statistics();
  auto const calls    = static_cast<double>(state.iterations()) * worker::calls_a_turn;
  auto const evicted  = now.evicted_bytes - before.evicted_bytes;
  auto const dropped  = now.dropped_bytes - before.dropped_bytes;
  auto const a_thread = [&state](char const* name, double value) {
    state.counters[name] = {value, benchmark::Counter::kAvgThreads};
  };
  a_thread("waited_for_locks", share(waits.mutex_ns, spent_ns));
  a_thread("waited_for_others", share(waits.condition_ns, spent_ns));
  a_thread("contended", share(waits.contended, waits.locked));
  a_thread("locks_a_call", static_cast<double>(waits.locked) / calls);
  a_thread("dropped", share(dropped, dropped + evicted));
  a_thread("failed_calls", static_cast<double>(now.failed_calls));
  state.SetItemsProcessed(static_cast<std::int64_t>(calls));
}

/** @brief Bytes that a ledger of 64 GiB takes for each block, of the process's own memory. */
[[nodiscard]] double measured_bytes_a_block()
{
  auto const taken = [] {
    auto const info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  auto const before = taken();
  residency_ledger ledger;
  for (std::size_t slab = 0; slab < 64; ++slab) {
    ledger.add_slab({first_address + slab * slab_bytes, slab_bytes});
  }
  return static_cast<double>(taken() - before) /
         static_cast<double>(ledger.slab_bytes() / va_block_bytes);
}

// Half of a budget of 2 x the ledger: all of it fits. Of 1 x: it does not.
void blocks_fitting(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({"blocks", "ledger_gib", "half_budgets_gib"});
  for (std::int64_t const ledger_gib : {1, 64}) {
    for (std::int64_t const blocks : {1, 8, 64, 512}) {
      benchmark->Args({blocks, ledger_gib, 2 * ledger_gib});
    }
  }
}

void blocks_short_of_room(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({"blocks", "ledger_gib", "half_budgets_gib"});
  for (std::int64_t const ledger_gib : {1, 8, 64}) {
    for (std::int64_t const blocks : {1, 8, 64}) {
      benchmark->Args({blocks, ledger_gib, ledger_gib});
    }
  }
}

// As much as fits the largest devices: what making room costs may not grow with what is kept.
void blocks_of_large_ledgers(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({"blocks", "ledger_gib", "half_budgets_gib"});
  for (std::int64_t const ledger_gib : {8, 16, 256}) {
    for (std::int64_t const blocks : {1, 32}) {
      benchmark->Args({blocks, ledger_gib, ledger_gib});
    }
  }
}

void ledgers_and_threads(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({"ledger_gib", "budget_gib"});
  benchmark->Args({64, 64})->Args({8, 4})->Args({64, 4});
  benchmark->Threads(1)->Threads(2)->Threads(4)->Threads(8)->UseRealTime();
  benchmark->MeasureProcessCPUTime();  // the migration thread's too
  benchmark->Setup(make_shared_budget)->Teardown(forget_shared_budget);
}

BENCHMARK(allocate_free)->Apply(blocks_fitting)->Apply(blocks_short_of_room);
BENCHMARK(use_in_turn)->Apply(blocks_of_large_ledgers);
BENCHMARK(threads)->Apply(ledgers_and_threads);

}  // namespace

int main(int argc, char** argv)
{
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) { return 1; }
  benchmark::AddCustomContext("record_bytes", std::to_string(sizeof(rmm_uvm::block_record)));
  benchmark::AddCustomContext("bytes_a_block", std::to_string(measured_bytes_a_block()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
