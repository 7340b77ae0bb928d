// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Allocate and free through the adaptor, over a pool that costs nothing: RMM's own is not counted.
#include "../free_of_charge.hpp"
#include "paths.hpp"

#include <rmm_uvm/mr/uvm_resource_adaptor.hpp>

#include <memory>
#include <utility>

namespace rmm_uvm::benchmarks {
namespace {

using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

constexpr std::size_t alignment = 256;

/** @brief An adaptor and what is below it. */
struct chain {
  explicit chain(std::size_t budget_bytes = 0) : residency{residency_of(driver, budget_bytes)} {}

  /** @brief Under a budget, if any, before the first slab comes. */
  [[nodiscard]] static std::shared_ptr<managed_residency> residency_of(
    std::shared_ptr<no_op_driver> const& driver, std::size_t budget_bytes)
  {
    auto made = std::make_shared<managed_residency>(driver, make_epoch_source(*driver));
    if (budget_bytes > 0) {
      auto settings       = residency_settings::of(budget_bytes);
      settings.background = false;
      made->start_budget(settings);
    }
    return made;
  }

  /** @brief One allocation, and its end. */
  void turn(std::size_t bytes)
  {
    cuda::stream_ref const stream{cudaStream_t{nullptr}};
    auto* const ptr = resource.allocate(stream, bytes, alignment);
    resource.deallocate(stream, ptr, bytes, alignment);
  }

  std::shared_ptr<no_op_driver> driver{std::make_shared<no_op_driver>()};
  std::shared_ptr<managed_residency> residency;
  mr::managed_memory_resource managed{
    residency, std::make_shared<managed_account>(), prefetch_mode::automatic};
  any_resource resource{mr::uvm_resource_adaptor{
    free_of_charge{managed, 4 * gib}, residency, prefetch_mode::automatic}};
};

[[gnu::noipa]] void hot_path_allocate_free(chain& made, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    made.turn(mib);
  }
}

[[gnu::noipa]] void hot_path_allocate_free_after_evictions(chain& made, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    made.driver->counted.device_to_host_bytes.fetch_add(1, std::memory_order_relaxed);
    made.turn(64 * mib);
  }
}

[[gnu::noipa]] void hot_path_allocate_free_under_a_budget(chain& made, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    made.turn(64 * mib);
  }
}

}  // namespace

void count_allocations()
{
  chain plain;
  plain.turn(mib);
  count("allocate_free", hot_path_allocate_free, 1000, plain);
  plain.turn(64 * mib);
  count("allocate_free_after_evictions", hot_path_allocate_free_after_evictions, 1000, plain);
  chain fitting{8 * gib};
  fitting.turn(64 * mib);
  count("allocate_free_under_a_budget", hot_path_allocate_free_under_a_budget, 1000, fitting);
}

}  // namespace rmm_uvm::benchmarks
