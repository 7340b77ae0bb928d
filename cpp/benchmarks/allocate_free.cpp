// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Host time of allocate + free through our chain and RMM's, all over the same driver, which does
// nothing: what is measured is the resources' own cost, and no GPU is needed.
#include <rmm_uvm/mr/managed_memory_resource.hpp>
#include <rmm_uvm/mr/uvm_resource_adaptor.hpp>

#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/prefetch_resource_adaptor.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

namespace {

using rmm_uvm::prefetch_mode;
using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

constexpr std::size_t pool_bytes       = std::size_t{1} << 34U;
constexpr std::size_t alignment        = 256;
constexpr std::size_t total_bytes      = std::size_t{1} << 37U;
constexpr std::uintptr_t first_address = std::uintptr_t{1} << 44U;

/** @brief Counters that rise only when the benchmark says that something was evicted. */
class set_counters final : public rmm_uvm::migration_counters {
 public:
  std::atomic<std::uint64_t> device_to_host_bytes{0};
  [[nodiscard]] rmm_uvm::availability available() const override { return {}; }
  [[nodiscard]] rmm_uvm::migration_totals read() const noexcept override
  {
    return {0, device_to_host_bytes.load(std::memory_order_relaxed)};
  }
};

/** @brief A driver that hands out addresses and does nothing else. */
class no_op_driver final : public rmm_uvm::uvm_driver {
 public:
  no_op_driver() { info_.total_bytes = total_bytes; }

  set_counters counted;

  using status = rmm_uvm::status;
  using range  = rmm_uvm::memory_range;
  using ranges = std::span<range const>;
  using stream = rmm_uvm::stream_handle;
  [[nodiscard]] rmm_uvm::device_info const& info() const noexcept override { return info_; }
  [[nodiscard]] rmm_uvm::migration_counters const& counters() const noexcept override
  {
    return counted;
  }
  status memory(rmm_uvm::device_memory& memory) noexcept override
  {
    memory = {total_bytes, total_bytes};
    return {};
  }
  status allocate_managed(std::size_t bytes, std::uintptr_t& address) noexcept override
  {
    address = next_address_.fetch_add(rmm_uvm::va_block_ceil(bytes));
    return {};
  }
  status free_managed(std::uintptr_t) noexcept override { return {}; }
  status prefetch(range, rmm_uvm::location, stream) noexcept override { return {}; }
  status discard(ranges, stream) noexcept override { return {}; }
  status advise(range, rmm_uvm::memory_advice, rmm_uvm::location) noexcept override { return {}; }
  status discard_and_prefetch(ranges, rmm_uvm::location, stream) noexcept override { return {}; }
  status order(stream, stream) noexcept override { return {}; }
  status own_stream(rmm_uvm::own_stream_use, stream&) noexcept override { return {}; }
  status mark(std::size_t, stream) noexcept override { return {}; }
  [[nodiscard]] bool passed(std::size_t) noexcept override { return true; }
  [[nodiscard]] rmm_uvm::capture_state capturing(stream) noexcept override { return {}; }
  status synchronize(stream) noexcept override { return {}; }

 private:
  rmm_uvm::device_info info_;
  std::atomic<std::uintptr_t> next_address_{first_address};
};

/** @brief The parts below every chain. */
struct base {
  std::shared_ptr<no_op_driver> driver{std::make_shared<no_op_driver>()};
  std::shared_ptr<rmm_uvm::prefetcher> prefetcher{
    std::make_shared<rmm_uvm::prefetcher>(driver, rmm_uvm::make_epoch_source(*driver))};
  rmm_uvm::mr::managed_memory_resource managed{
    prefetcher, std::make_shared<rmm_uvm::managed_account>(), prefetch_mode::automatic};

  [[nodiscard]] rmm::mr::pool_memory_resource pool() const
  {
    return rmm::mr::pool_memory_resource{managed, pool_bytes};
  }
};

struct rmm_pool {
  base below;
  any_resource resource{below.pool()};
};
struct rmm_prefetch_pool {
  base below;
  any_resource resource{rmm::mr::prefetch_resource_adaptor{below.pool()}};
};
struct rmm_arena {
  base below;
  any_resource resource{rmm::mr::arena_memory_resource{below.managed, pool_bytes}};
};
struct uvm_pool {
  base below;
  any_resource resource{
    rmm_uvm::mr::uvm_resource_adaptor{below.pool(), below.prefetcher, prefetch_mode::automatic}};
};
struct uvm_pool_always {
  base below;
  any_resource resource{
    rmm_uvm::mr::uvm_resource_adaptor{below.pool(), below.prefetcher, prefetch_mode::always}};
};

/** @brief Allocates and frees `state.range(0)` bytes beside a live neighbour. */
template <typename Chain>
void allocate_free(benchmark::State& state)
{
  auto const bytes = static_cast<std::size_t>(state.range(0));
  cuda::stream_ref const stream{cudaStream_t{nullptr}};
  try {
    Chain chain;
    auto* const neighbour = chain.resource.allocate(stream, alignment, alignment);
    for ([[maybe_unused]] auto const turn : state) {
      auto* const ptr = chain.resource.allocate(stream, bytes, alignment);
      benchmark::DoNotOptimize(ptr);
      chain.resource.deallocate(stream, ptr, bytes, alignment);
    }
    chain.resource.deallocate(stream, neighbour, alignment, alignment);
  } catch (std::exception const& error) {
    state.SkipWithError((std::string{"cannot run here: "} + error.what()).c_str());
  }
}

/** @brief As above, when every allocation follows an eviction: the path that costs something. */
void allocate_free_in_doubt(benchmark::State& state)
{
  auto const bytes = static_cast<std::size_t>(state.range(0));
  cuda::stream_ref const stream{cudaStream_t{nullptr}};
  uvm_pool chain;
  for ([[maybe_unused]] auto const turn : state) {
    chain.below.driver->counted.device_to_host_bytes.fetch_add(1, std::memory_order_relaxed);
    auto* const ptr = chain.resource.allocate(stream, bytes, alignment);
    benchmark::DoNotOptimize(ptr);
    chain.resource.deallocate(stream, ptr, bytes, alignment);
  }
}

void sizes(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgName("bytes")->Arg(256)->Arg(1 << 20)->Arg(256 << 20);
}

BENCHMARK(allocate_free<rmm_pool>)->Apply(sizes);
BENCHMARK(allocate_free<rmm_prefetch_pool>)->Apply(sizes);
BENCHMARK(allocate_free<rmm_arena>)->Apply(sizes);
BENCHMARK(allocate_free<uvm_pool>)->Apply(sizes);
BENCHMARK(allocate_free<uvm_pool_always>)->Apply(sizes);
BENCHMARK(allocate_free_in_doubt)->Apply(sizes);

}  // namespace

int main(int argc, char** argv)
{
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) { return 1; }
  benchmark::AddCustomContext("driver",
                              "does nothing; without a GPU, RMM's prefetch adaptor issues no "
                              "prefetch at all and its arena does not run");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
