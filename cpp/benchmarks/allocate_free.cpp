// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Host time of allocate + free through our chain and RMM's, all over the same driver, which does
// nothing: what is measured is the resources' own cost, and no GPU is needed.
#include "free_of_charge.hpp"
#include "no_op_driver.hpp"

#include <rmm_uvm/mr/managed_memory_resource.hpp>
#include <rmm_uvm/mr/uvm_resource_adaptor.hpp>

#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/prefetch_resource_adaptor.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>

namespace {

using rmm_uvm::prefetch_mode;
using rmm_uvm::benchmarks::free_of_charge;
using rmm_uvm::benchmarks::no_op_driver;
using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

constexpr std::size_t pool_bytes = std::size_t{1} << 34U;
constexpr std::size_t alignment  = 256;

/** @brief The parts below every chain. */
struct base {
  std::shared_ptr<no_op_driver> driver{std::make_shared<no_op_driver>()};
  std::shared_ptr<rmm_uvm::managed_residency> residency{
    std::make_shared<rmm_uvm::managed_residency>(driver, rmm_uvm::make_epoch_source(*driver))};
  rmm_uvm::mr::managed_memory_resource managed{
    residency, std::make_shared<rmm_uvm::managed_account>(), prefetch_mode::automatic};

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
    rmm_uvm::mr::uvm_resource_adaptor{below.pool(), below.residency, prefetch_mode::automatic}};
};
/** @brief What our adaptor takes: the least that any pool below it could come to. */
struct uvm_alone {
  base below;
  any_resource resource{rmm_uvm::mr::uvm_resource_adaptor{
    free_of_charge{below.managed, pool_bytes}, below.residency, prefetch_mode::automatic}};
};

/** @brief The same parts under a budget that everything fits. */
struct base_with_budget : base {
  base_with_budget()
  {
    rmm_uvm::residency_settings settings;
    settings.budget_bytes = 2 * pool_bytes;
    settings.low_bytes    = settings.budget_bytes;
    settings.background   = false;
    residency->start_budget(settings);
  }
};
struct uvm_pool_budget {
  base_with_budget below;
  any_resource resource{
    rmm_uvm::mr::uvm_resource_adaptor{below.pool(), below.residency, prefetch_mode::automatic}};
};
struct uvm_alone_budget {
  base_with_budget below;
  any_resource resource{rmm_uvm::mr::uvm_resource_adaptor{
    free_of_charge{below.managed, pool_bytes}, below.residency, prefetch_mode::automatic}};
};
struct uvm_pool_always {
  base below;
  any_resource resource{
    rmm_uvm::mr::uvm_resource_adaptor{below.pool(), below.residency, prefetch_mode::always}};
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
BENCHMARK(allocate_free<uvm_alone>)->Apply(sizes);
BENCHMARK(allocate_free<uvm_pool_budget>)->Apply(sizes);
BENCHMARK(allocate_free<uvm_alone_budget>)->Apply(sizes);
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
