// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A budget of half of what is used: blocks leave, uses are learnt, what comes next is decided.
#include "paths.hpp"

#include <rmm_uvm/residency/correlation_predictor.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/prefetch_policy.hpp>
#include <rmm_uvm/residency/repeat_predictor.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <array>
#include <memory>

namespace rmm_uvm::benchmarks {
namespace {

constexpr std::size_t piece_bytes  = 8 * va_block_bytes;
constexpr std::size_t ledger_bytes = 4 * gib;
constexpr std::size_t places       = ledger_bytes / piece_bytes;

[[nodiscard]] memory_range place(std::size_t number)
{
  return {first_address + number % places * piece_bytes, piece_bytes};
}

[[nodiscard]] use_event use_of(std::size_t number)
{
  auto const used = place(number);
  return {use_kind::touch, used, used.address};
}

/** @brief A budget of so many bytes over memory that is all live. */
struct kept_budget {
  explicit kept_budget(std::size_t budget_bytes)
  {
    ledger.add_slab({first_address, ledger_bytes});
    auto settings       = residency_settings::of(budget_bytes);
    settings.background = false;
    manager =
      std::make_unique<residency_manager>(std::make_shared<no_op_driver>(), ledger, settings);
    for (std::size_t number = 0; number < places; ++number) {
      manager->on_allocate(place(number), nullptr);
    }
  }
  /** @brief A use of the next piece. */
  void touch(std::size_t number) const
  {
    auto const use = use_of(number);
    manager->on_touch({&use, 1}, nullptr);
  }

  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

/** @brief Shows a predictor an iteration over all places. */
void show(use_predictor& predictor, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    static_cast<void>(predictor.observe(use_of(round)));
  }
}

[[gnu::noipa]] void hot_path_touch_fitting(kept_budget& kept, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    kept.touch(round);
  }
}

[[gnu::noipa]] void hot_path_touch_and_evict(kept_budget& kept, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    kept.touch(round);
  }
}

[[gnu::noipa]] void hot_path_allocate_free_and_evict(kept_budget& kept, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    kept.manager->on_free(place(round), nullptr);
    kept.manager->on_allocate(place(round), nullptr);
  }
}

[[gnu::noipa]] void hot_path_repeat_observe(use_predictor& predictor, std::size_t rounds)
{
  show(predictor, rounds);
}

[[gnu::noipa]] void hot_path_correlation_observe(use_predictor& predictor, std::size_t rounds)
{
  show(predictor, rounds);
}

[[gnu::noipa]] void hot_path_repeat_upcoming(use_predictor const& predictor, std::size_t rounds)
{
  for (std::size_t round = 0; round < rounds; ++round) {
    require(!predictor.upcoming(gib / 2).empty());
  }
}

[[gnu::noipa]] void hot_path_plan_allocation(memory_range allocation, std::size_t rounds)
{
  std::array const doubtful{memory_range{allocation.address - 256, allocation.bytes + 512}};
  for (std::size_t round = 0; round < rounds; ++round) {
    auto const plan = plan_allocation(allocation, doubtful, true);
    require(plan.dead.size() == 1);
  }
}

}  // namespace

void count_budgets()
{
  kept_budget fitting{2 * ledger_bytes};
  fitting.touch(0);
  count("touch_fitting", hot_path_touch_fitting, 1000, fitting);

  kept_budget half{ledger_bytes / 2};
  for (std::size_t number = 0; number < 4 * places; ++number) {
    half.touch(number);
  }
  count("touch_and_evict", hot_path_touch_and_evict, 4 * places, half);
  require(half.manager->statistics().evicted_bytes > ledger_bytes);
  count("allocate_free_and_evict", hot_path_allocate_free_and_evict, 4 * places, half);

  repeat_predictor repeat;
  show(repeat, 4 * places);
  count("repeat_observe", hot_path_repeat_observe, 4 * places, repeat);
  count("repeat_upcoming", hot_path_repeat_upcoming, 1000, repeat);
  correlation_predictor correlation;
  show(correlation, 4 * places);
  count("correlation_observe", hot_path_correlation_observe, 4 * places, correlation);

  memory_range const allocation{first_address + va_block_bytes, 8 * va_block_bytes};
  count("plan_allocation", hot_path_plan_allocation, 1000, allocation);
}

}  // namespace rmm_uvm::benchmarks
