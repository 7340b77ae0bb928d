// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Property: whatever is discarded, no live allocation loses a byte. With its twins, which must
// lose.
#include "../support/live_contents.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace rmm_uvm {
namespace {

using tests::live_contents;
using policy = std::function<prefetch_plan(
  memory_range allocation, std::span<memory_range const> doubtful, bool discards)>;

constexpr int steps = 600;

/** @brief Enacts any policy over a ledger, as `unbudgeted_enactor` enacts `plan_allocation`. */
class policy_enactor {
 public:
  policy_enactor(live_contents& contents, policy plan)
    : driver_{*contents.device}, epochs_{make_epoch_source(driver_)}, plan_{std::move(plan)}
  {
    ledger_.add_slab(contents.slab);
  }

  void operator()(memory_range allocation, stream_handle stream)
  {
    auto const epoch = epochs_->current();
    auto const runs  = ledger_.doubtful_runs(allocation, epoch);
    auto const plan  = plan_(allocation, runs, true);
    for (auto const& range : plan.kept) {
      static_cast<void>(driver_.prefetch(range, location::device(0), stream));
      ledger_.mark_on_device(range, epoch);
    }
    if (plan.dead.empty()) { return; }
    static_cast<void>(driver_.discard_and_prefetch(plan.dead, location::device(0), stream));
    for (auto const& range : plan.dead) {
      ledger_.mark_on_device(range, epoch);
    }
  }

 private:
  uvm_driver& driver_;
  std::unique_ptr<epoch_source> epochs_;
  residency_ledger ledger_;
  policy plan_;
};

[[nodiscard]] std::size_t lost_with(policy plan)
{
  live_contents contents;
  policy_enactor enact{contents, std::move(plan)};
  return contents.run(std::ref(enact), nullptr, 7, steps);
}

/** @brief Mutant: discards the edge blocks too. */
[[nodiscard]] prefetch_plan discard_edges(memory_range,
                                          std::span<memory_range const> doubtful,
                                          bool)
{
  return {{}, {doubtful.begin(), doubtful.end()}};
}

/** @brief Mutant: takes the block that holds the allocation's end for one inside it. */
[[nodiscard]] prefetch_plan discard_last_edge(memory_range allocation,
                                              std::span<memory_range const> doubtful,
                                              bool discards)
{
  allocation.bytes = va_block_ceil(allocation.end()) - allocation.address;
  return plan_allocation(allocation, doubtful, discards);
}

TEST(PrefetcherContents, HoldOverRandomAllocationsAndEvictions)
{
  for (std::uint64_t const seed : {1U, 2U, 3U}) {
    live_contents contents;
    managed_residency residency{contents.device, make_epoch_source(*contents.device)};
    residency.on_slab(contents.slab, nullptr, prefetch_mode::automatic);
    auto const enact = [&](memory_range allocation, stream_handle stream) {
      residency.on_allocate(allocation, stream, prefetch_mode::automatic);
    };
    EXPECT_EQ(contents.run(enact, nullptr, seed, steps), 0U) << "seed " << seed;
    EXPECT_GT(residency.statistics().discarded_bytes, 0U);  // it was put to the test
    EXPECT_GT(residency.statistics().prefetched_bytes, 0U);
    EXPECT_EQ(residency.statistics().failed_calls, 0U);
  }
}

TEST(PrefetcherContents, HoldWhenDiscardsFailNowAndThen)
{
  live_contents contents;
  managed_residency residency{contents.device, make_epoch_source(*contents.device)};
  residency.on_slab(contents.slab, nullptr, prefetch_mode::automatic);
  for (unsigned call = 0; call < 20; ++call) {
    contents.device->answers().plan(
      "discard_and_prefetch", {status_code::driver_error, 1, "planned"}, call);
  }
  auto const enact = [&](memory_range allocation, stream_handle stream) {
    residency.on_allocate(allocation, stream, prefetch_mode::automatic);
  };
  EXPECT_EQ(contents.run(enact, nullptr, 5, steps), 0U);
  EXPECT_GT(residency.statistics().failed_calls, 0U);
}

TEST(PrefetcherContents, HoldWithTheTestsOwnEnactorOfTheRealPolicy)
{
  EXPECT_EQ(lost_with(plan_allocation), 0U);
}

TEST(PrefetcherContents, AreLostByAPolicyThatDiscardsEdges)
{
  EXPECT_GT(lost_with(discard_edges), 0U);
}

TEST(PrefetcherContents, AreLostByAPolicyThatDiscardsTheLastEdge)
{
  EXPECT_GT(lost_with(discard_last_edge), 0U);
}

}  // namespace
}  // namespace rmm_uvm
