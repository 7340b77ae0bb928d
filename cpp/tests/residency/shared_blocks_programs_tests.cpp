// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What programs move whose buffers share blocks, against the same with buffers of whole blocks.
#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/budget/shared_blocks.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using sizes = std::vector<std::size_t>;

constexpr std::size_t kib           = 1024;
constexpr std::size_t mib           = 1024 * kib;
constexpr std::size_t budget_blocks = 32;
constexpr std::size_t data_blocks   = 48;
constexpr std::size_t slab_blocks   = 96;
constexpr double most_beside_whole  = 1.15;

/** @brief Sizes in turn, as many as make up all data: one and a half times the budget. */
[[nodiscard]] sizes in_turn(sizes const& each)
{
  sizes all;
  std::size_t together = 0;
  for (std::size_t one = 0; together + each[one % each.size()] <= blocks(data_blocks); ++one) {
    all.push_back(each[one % each.size()]);
    together += all.back();
  }
  return all;
}

/** @brief A program under a budget, on the simulated device. */
class budgeted_program {
 public:
  explicit budgeted_program(bool ahead = false, use_tick clock_end = residency_settings{}.clock_end)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);
    device_               = std::make_shared<sim::simulated_device>(config);
    memory_range slab{0, blocks(slab_blocks)};
    static_cast<void>(device_->allocate_managed(slab.bytes, slab.address));
    ledger_.add_slab(slab);
    pool_               = std::make_unique<tests::first_fit>(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = eviction_policy::repeat;
    settings.ahead      = ahead;
    settings.background = false;
    settings.clock_end  = clock_end;
    manager_            = std::make_unique<residency_manager>(device_, ledger_, settings);
  }

  [[nodiscard]] memory_range take(std::size_t bytes)
  {
    memory_range const range{pool_->take(bytes).value(), bytes};
    manager_->on_allocate(range, nullptr);
    return range;
  }
  [[nodiscard]] std::vector<memory_range> take_all(sizes const& all)
  {
    std::vector<memory_range> buffers;
    for (auto const bytes : all) {
      buffers.push_back(take(bytes));
    }
    return buffers;
  }
  void give(memory_range range)
  {
    manager_->on_free(range, nullptr);
    pool_->give(range.address, range.bytes);
  }
  void touch(memory_range range)
  {
    tests::touch(*manager_, range, nullptr);
    manager_->run_pending();
  }
  /** @brief Blocks that a round copies, both ways, once it is known. */
  template <typename Round>
  [[nodiscard]] double moved_in(Round const& round)
  {
    constexpr int learnt  = 6;
    constexpr int counted = 6;
    for (int one = 0; one < learnt; ++one) {
      round();
    }
    auto const before = copied_bytes();
    for (int one = 0; one < counted; ++one) {
      round();
    }
    EXPECT_TRUE(manager_->statistics().foresees);
    return static_cast<double>(copied_bytes() - before) /
           static_cast<double>(counted * va_block_bytes);
  }

 private:
  [[nodiscard]] std::uint64_t copied_bytes() const
  {
    auto const now = device_->view().statistics();
    return now.host_to_device_bytes + now.device_to_host_bytes;
  }

  std::shared_ptr<sim::simulated_device> device_;
  residency_ledger ledger_;
  std::unique_ptr<tests::first_fit> pool_;
  std::unique_ptr<residency_manager> manager_;
};

/** @brief What rounds over buffers move, in the order of their addresses. */
[[nodiscard]] double rounds(sizes const& all,
                            bool ahead         = false,
                            use_tick clock_end = residency_settings{}.clock_end)
{
  budgeted_program program{ahead, clock_end};
  auto const buffers = program.take_all(all);
  return program.moved_in([&] {
    for (auto const& each : buffers) {
      program.touch(each);
    }
  });
}

/** @brief The same with memory that each use allocates, uses and frees. */
[[nodiscard]] double rounds_with_results(sizes const& all, std::size_t result_bytes)
{
  budgeted_program program;
  auto const buffers = program.take_all(all);
  return program.moved_in([&] {
    for (auto const& each : buffers) {
      program.touch(each);
      auto const result = program.take(result_bytes);
      program.touch(result);
      program.give(result);
    }
  });
}

/** @brief The same where a third of the buffers are freed before their use, and made anew. */
[[nodiscard]] double rounds_with_new_buffers(sizes const& all)
{
  budgeted_program program;
  auto buffers = program.take_all(all);
  return program.moved_in([&] {
    for (std::size_t one = 0; one < buffers.size(); ++one) {
      if (one % 3 == 1) {
        program.give(buffers[one]);
        auto const before = buffers[one].address;
        buffers[one]      = program.take(buffers[one].bytes);
        EXPECT_EQ(buffers[one].address, before);
      }
      program.touch(buffers[one]);
    }
  });
}

/** @brief The same where each block has a part that was freed at the start, and nobody takes. */
[[nodiscard]] double rounds_beside_free_parts(sizes const& all, std::size_t part_bytes)
{
  budgeted_program program;
  std::vector<memory_range> buffers;
  std::vector<memory_range> parts;
  for (auto const bytes : all) {
    buffers.push_back(program.take(bytes));
    parts.push_back(program.take(part_bytes));
  }
  for (auto const& each : parts) {
    program.give(each);
  }
  return program.moved_in([&] {
    for (auto const& each : buffers) {
      program.touch(each);
    }
  });
}

struct named_sizes {
  char const* name;
  sizes each;
};

class SmallBuffers : public testing::TestWithParam<named_sizes> {};

TEST_P(SmallBuffers, MoveWhatWholeBlocksDo)
{
  auto const whole = rounds(in_turn({blocks(1)}));
  EXPECT_LE(rounds(in_turn(GetParam().each)), most_beside_whole * whole);
}

TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWithFetchesAhead)
{
  // A longer buffer comes and leaves in more pieces: what a piece of two blocks costs, both pay.
  auto const whole =
    std::max(rounds(in_turn({blocks(1)}), true), rounds(in_turn({blocks(4)}), true));
  EXPECT_LE(rounds(in_turn(GetParam().each), true), most_beside_whole * whole);
}

TEST_P(SmallBuffers, MoveWhatWholeBlocksDoBesideResults)
{
  auto const whole = rounds_with_results(in_turn({blocks(1)}), blocks(1));
  EXPECT_LE(rounds_with_results(in_turn(GetParam().each), 1 * mib), most_beside_whole * whole);
}

TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWhereTheirMemoryIsHandedOutAnew)
{
  auto const whole = rounds_with_new_buffers(in_turn({blocks(1)}));
  EXPECT_LE(rounds_with_new_buffers(in_turn(GetParam().each)), most_beside_whole * whole);
}

TEST_P(SmallBuffers, MoveWhatWholeBlocksDoWhereTheClockIsTurnedBack)
{
  auto const all = in_turn(GetParam().each);
  // So that it is several times, and remembers a round or more.
  auto const end = static_cast<use_tick>(3 * all.size());
  EXPECT_LE(rounds(all, false, end), most_beside_whole * rounds(in_turn({blocks(1)}), false, end));
}

INSTANTIATE_TEST_SUITE_P(
  Sizes,
  SmallBuffers,
  testing::Values(named_sizes{"Of1MiB", {1 * mib}},
                  named_sizes{"Of512KiB", {512 * kib}},
                  named_sizes{"Of256KiB", {256 * kib}},
                  named_sizes{"Of64KiB", {64 * kib}},
                  named_sizes{"Mixed", {256 * kib, 1 * mib, 512 * kib, 3 * mib, 768 * kib}},
                  named_sizes{"AcrossBorders", {1536 * kib}},
                  named_sizes{"AcrossBordersAtOddPlaces", {700 * kib + 256, 1900 * kib + 512}},
                  named_sizes{"LargeAcrossBorders", {5 * mib + 256 * kib}},
                  named_sizes{"ColumnsOfAFrame",
                              {4 * mib, 128 * kib, 4 * mib, 64 * kib, 32 * kib, 256, 2 * mib}}),
  [](auto const& one) { return std::string{one.param.name}; });

TEST(SmallBuffersBesideFreeParts, MoveWhatWholeBlocksDo)
{
  auto const whole = rounds(sizes(data_blocks, blocks(1)));
  EXPECT_LE(rounds_beside_free_parts(sizes(data_blocks, 1536 * kib), 512 * kib),
            most_beside_whole * whole);
  EXPECT_LE(rounds_beside_free_parts(sizes(2 * data_blocks, 768 * kib), 256 * kib),
            most_beside_whole * whole);
}

// -- what is expected of a block -----------------------------------------------------------------

class SharedBlocks : public testing::Test {
 protected:
  static constexpr std::uintptr_t block = 2 * mib;
  static constexpr std::uintptr_t first = block, second = block + 256, third = block + 512;

  use_tick use(std::uintptr_t owner, use_tick next, use_tick now, bool no_more = false)
  {
    return shared.use(block, owner, {next, no_more}, {now, false});
  }

  shared_blocks shared;
};

TEST_F(SharedBlocks, AreNeededWhenTheFirstOfThemIs)
{
  shared.begin(block, unknown_use, 1);
  EXPECT_EQ(use(first, 150, 50), 150U);
  EXPECT_EQ(use(second, 120, 51), 120U);
  EXPECT_EQ(use(second, 220, 120), 150U);  // what the first said is not forgotten
  EXPECT_EQ(use(first, 250, 150), 220U);
}

TEST_F(SharedBlocks, WhatIsFreedIsNotNeededAnyMore)
{
  shared.begin(block, unknown_use, 1);
  static_cast<void>(use(first, 150, 50));
  EXPECT_EQ(use(second, 120, 51), 120U);
  EXPECT_EQ(shared.forget(block, second, {60, false}), 150U);
  EXPECT_EQ(use(second, 130, 61), 130U);  // the same place, handed out again
  EXPECT_EQ(shared.forget(block, first, {62, false}), 130U);
}

TEST_F(SharedBlocks, APartThatWasJustFreedIsNeededSoonAndNotForEver)
{
  shared.begin(block, unknown_use, 1);
  static_cast<void>(use(first, 900, 50));
  static_cast<void>(use(second, 950, 51));
  EXPECT_EQ(shared.forget(block, second, {100, true}), 116U);
  EXPECT_EQ(shared.look_again(block, {116, true}), unknown_use);  // then its last use judges
  EXPECT_EQ(shared.use(block, first, {1'750, false}, {900, true}), 1'700U);
  EXPECT_EQ(shared.use(block, first, {2'600, false}, {1'750, true}), 2'600U);
}

TEST_F(SharedBlocks, OneThatIsNotForeseenIsTakenToBeNeededSoonAfterItsUseOnly)
{
  shared.begin(block, unknown_use, 1);
  static_cast<void>(use(first, 200, 100));
  EXPECT_EQ(use(second, unknown_use, 101), 117U);
  EXPECT_EQ(shared.look_again(block, {117, false}), 200U);
  EXPECT_EQ(use(third, 190, 118), 190U);
  EXPECT_EQ(use(third, unknown_use, 190), 200U);
}

TEST_F(SharedBlocks, OfWhichNoneIsForeseenAreJudgedByTheirLastUse)
{
  shared.begin(block, unknown_use, 1);
  EXPECT_EQ(use(first, unknown_use, 100), unknown_use);
  EXPECT_EQ(use(second, 300, 101, true), unknown_use);  // freed then: kernels may use it until then
  EXPECT_EQ(use(third, 400, 102), 116U);
  EXPECT_EQ(shared.look_again(block, {117, false}), 300U);  // and handed out again
}

TEST_F(SharedBlocks, OfWhichNoneIsUsedAgainAreNot)
{
  shared.begin(block, no_use, 1);
  EXPECT_EQ(use(first, no_use, 100), no_use);
}

TEST_F(SharedBlocks, OneThatDidNotComeWhenItWasExpectedIsNotForeseenAnyMore)
{
  shared.begin(block, 60, 1);
  EXPECT_EQ(use(first, 150, 50), 60U);
  EXPECT_EQ(shared.look_again(block, {61, false}), 150U);
  EXPECT_EQ(shared.look_again(block, {151, false}), unknown_use);
}

TEST_F(SharedBlocks, WhatNobodyKnowsIsNotNeeded)
{
  EXPECT_EQ(shared.look_again(block, {1, false}), unknown_use);
  EXPECT_EQ(shared.forget(block, first, {1, false}), unknown_use);
  shared.end(block);
  EXPECT_EQ(shared.size(), 0U);
}

TEST_F(SharedBlocks, TurnBackWithTheClock)
{
  shared.begin(block, unknown_use, 1'001);
  static_cast<void>(use(first, 1'250, 1'100));
  static_cast<void>(use(second, 1'300, 1'101));
  static_cast<void>(use(third, unknown_use, 1'102));
  shared.turn_back(tick_shift{1'000});
  EXPECT_EQ(shared.look_again(block, {110, false}), 118U);
  EXPECT_EQ(shared.look_again(block, {118, false}), 250U);
  EXPECT_EQ(use(first, 400, 250), 300U);
  EXPECT_EQ(shared.forget(block, second, {251, false}), 400U);
}

}  // namespace
}  // namespace rmm_uvm
