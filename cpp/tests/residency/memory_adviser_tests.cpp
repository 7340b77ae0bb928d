// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the adviser tells a driver, call by call, and that nothing stays told that is not known.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/residency/memory_adviser.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::recording_driver;
using tests::slab_address;
using calls = std::vector<driver_call>;

constexpr auto host_id                = location::host_id;
constexpr status refused              = {status_code::driver_error, 999, "cuMemAdvise"};
constexpr advice_change reads         = {true, std::nullopt};
constexpr advice_change no_reads      = {false, std::nullopt};
constexpr advice_change to_be_on_host = {std::nullopt, preferred_place::host};

class MemoryAdviser : public testing::Test {
 protected:
  MemoryAdviser() { ledger.add_slab(slab); }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count = 1)
  {
    return tests::block_range(slab_address, first, count);
  }
  [[nodiscard]] static driver_call told(memory_range range,
                                        memory_advice what,
                                        int device_id = host_id)
  {
    return {"advise", {range}, nullptr, device_id, what};
  }

  memory_range const slab{slab_address, blocks(8) - 4096};  // the last block is cut off
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  memory_adviser adviser{driver, ledger};
};

TEST_F(MemoryAdviser, IsAboutTheBlocksThatLieWhollyInTheRange)
{
  memory_range const mine{at(1).address + 4096, blocks(3)};  // ends in block 4
  auto const outcome = adviser.advise(mine, reads);
  EXPECT_EQ(outcome.whole_bytes, blocks(2));
  EXPECT_EQ(outcome.advised_bytes, blocks(2));
  EXPECT_TRUE(outcome.failure.ok());
  EXPECT_EQ(driver->take_calls(), (calls{told(at(2, 2), memory_advice::read_mostly)}));
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
}

TEST_F(MemoryAdviser, OfLessThanABlockTellsNothing)
{
  EXPECT_EQ(adviser.advise({at(1).address + 1, blocks(1)}, reads).whole_bytes, 0U);
  EXPECT_EQ(adviser.advise({at(7).address, slab.end() - at(7).address}, reads).whole_bytes, 0U);
  EXPECT_EQ(adviser.advise({4096, blocks(4)}, reads).whole_bytes, 0U);  // of no slab
  EXPECT_TRUE(driver->take_calls().empty());
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, GoesOverTheEndOfASlabToTheNext)
{
  memory_range const next{slab_address + blocks(8), blocks(4)};
  residency_ledger two;
  two.add_slab({slab_address, blocks(8)});
  two.add_slab(next);
  memory_adviser both{driver, two};
  EXPECT_EQ(both.advise({at(6).address, blocks(4)}, reads).advised_bytes, blocks(4));
  EXPECT_EQ(driver->take_calls(),
            (calls{told(at(6, 2), memory_advice::read_mostly),
                   told(at(8, 2), memory_advice::read_mostly)}));
}

TEST_F(MemoryAdviser, TellsBothAndWhere)
{
  adviser.advise(at(0, 2), {true, preferred_place::device});
  adviser.advise(at(1), to_be_on_host);
  adviser.advise(at(0, 2), {false, preferred_place::none});
  EXPECT_EQ(driver->take_calls(),
            (calls{told(at(0, 2), memory_advice::read_mostly),
                   told(at(0, 2), memory_advice::preferred_location, 0),
                   told(at(1), memory_advice::preferred_location),
                   told(at(0, 2), memory_advice::unset_read_mostly),
                   told(at(0, 2), memory_advice::unset_preferred_location)}));
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, WhatIsFreedIsTakenBackWithTheBlocksThatItShares)
{
  adviser.advise(at(0, 6), reads);
  adviser.advise(at(4, 2), to_be_on_host);
  static_cast<void>(driver->take_calls());
  memory_range const freed{at(1).address + 4096, blocks(4) - 4096};  // blocks 1 to 4
  EXPECT_TRUE(adviser.take_back(freed).ok());
  EXPECT_EQ(driver->take_calls(),
            (calls{told(at(4), memory_advice::unset_preferred_location),
                   told(at(1, 4), memory_advice::unset_read_mostly)}));
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
}

TEST_F(MemoryAdviser, FreeOfOtherMemoryTellsNothing)
{
  EXPECT_TRUE(adviser.take_back(at(0, 8)).ok());
  adviser.advise(at(3), reads);
  static_cast<void>(driver->take_calls());
  EXPECT_TRUE(adviser.take_back(at(0, 3)).ok());
  EXPECT_TRUE(adviser.take_back(at(4, 3)).ok());
  EXPECT_TRUE(driver->take_calls().empty());
}

TEST_F(MemoryAdviser, TakenBackPutsTheLedgerInDoubtSinceTheCopyOfTheHostStays)
{
  ledger.mark_on_device(slab, 1);
  adviser.advise(at(0, 4), reads);
  EXPECT_TRUE(ledger.doubtful_runs(slab, 1).empty());
  EXPECT_TRUE(adviser.take_back(at(1)).ok());
  EXPECT_EQ(ledger.doubtful_runs(slab, 1), (std::vector<memory_range>{at(1)}));
}

TEST_F(MemoryAdviser, RefusedAdviceIsTakenBackWhole)
{
  driver->on_call = [&](driver_call const& call) {
    bool const bad            = call.advice == memory_advice::preferred_location;
    driver->answers["advise"] = bad ? refused : status{};
  };
  auto const outcome = adviser.advise(at(0, 2), {true, preferred_place::host});
  EXPECT_EQ(outcome.whole_bytes, blocks(2));
  EXPECT_EQ(outcome.advised_bytes, 0U);
  EXPECT_EQ(outcome.failure.native_error, 999);
  auto const made = driver->take_calls();
  ASSERT_EQ(made.size(), 4U);
  EXPECT_EQ(made[2], told(at(0, 2), memory_advice::unset_preferred_location));
  EXPECT_EQ(made[3], told(at(0, 2), memory_advice::unset_read_mostly));
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, WhatCannotBeTakenBackIsTriedAgain)
{
  adviser.advise(at(0, 2), reads);
  driver->answers["advise"] = refused;
  EXPECT_FALSE(adviser.take_back(at(0, 2)).ok());
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
  driver->answers.clear();
  EXPECT_TRUE(adviser.take_back(at(0, 2)).ok());
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, SlabThatGoesBackTakesItsAdviceAlong)
{
  adviser.advise(at(0, 4), {true, preferred_place::device});
  static_cast<void>(driver->take_calls());
  adviser.forget(slab);
  EXPECT_TRUE(driver->take_calls().empty());  // the driver forgets by itself
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, WithoutConcurrentAccessNothingIsToldAndNothingKept)
{
  driver->facts.concurrent_managed_access = availability::no("test");
  auto const outcome                      = adviser.advise(at(0, 2), reads);
  EXPECT_EQ(outcome.whole_bytes, blocks(2));
  EXPECT_EQ(outcome.advised_bytes, 0U);
  EXPECT_EQ(outcome.failure.code, status_code::not_supported);
  EXPECT_EQ(adviser.advised_bytes(), 0U);
  EXPECT_TRUE(driver->take_calls().empty());
}

// Leaving the device

TEST_F(MemoryAdviser, ReadMostlyLeavesWithoutTheAdviceAndHasItAgainAfterwards)
{
  adviser.advise(at(1, 2), reads);
  static_cast<void>(driver->take_calls());
  std::vector<memory_range> const going{at(0, 2), at(2, 2)};
  auto const left = adviser.to_host(going, stream);
  EXPECT_TRUE(left.moved.ok());
  EXPECT_TRUE(left.advised.ok());
  // Waiting first: a prefetch that is still on its way would copy, and leave a copy there.
  EXPECT_EQ(driver->take_calls(),
            (calls{told(at(1), memory_advice::unset_read_mostly),
                   told(at(2), memory_advice::unset_read_mostly),
                   {"prefetch", {at(0, 2)}, stream, host_id},
                   {"prefetch", {at(2, 2)}, stream, host_id},
                   {"synchronize", {}, stream},
                   told(at(1), memory_advice::read_mostly),
                   told(at(2), memory_advice::read_mostly)}));
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
}

TEST_F(MemoryAdviser, OtherMemoryLeavesWithOneCallAndNobodyWaits)
{
  adviser.advise(at(4), reads);
  static_cast<void>(driver->take_calls());
  EXPECT_TRUE(adviser.to_host(std::vector{at(0, 2)}, stream).moved.ok());
  EXPECT_EQ(driver->take_calls(), (calls{{"prefetch", {at(0, 2)}, stream, host_id}}));
}

TEST_F(MemoryAdviser, LeavesDirectlyWhereItIsAskedTo)
{
  adviser.advise(at(0), reads);
  static_cast<void>(driver->take_calls());
  EXPECT_TRUE(adviser.to_host(std::vector{at(0, 2)}, stream, true).moved.ok());
  EXPECT_EQ(driver->take_calls(),
            (calls{told(at(0), memory_advice::unset_read_mostly),
                   {"migrate", {at(0, 2)}, nullptr, host_id},
                   {"synchronize", {}, stream},
                   told(at(0), memory_advice::read_mostly)}));
}

TEST_F(MemoryAdviser, LeavesByAPrefetchWhereItDoesNotDirectlyAndSaysSo)
{
  driver->answers["migrate"] = {status_code::driver_error, 31, "UVM_MIGRATE"};
  auto const left            = adviser.to_host(std::vector{at(0, 2)}, stream, true);
  EXPECT_TRUE(left.moved.ok());
  EXPECT_EQ(left.direct.native_error, 31);
  EXPECT_EQ(
    driver->take_calls(),
    (calls{{"migrate", {at(0, 2)}, nullptr, host_id}, {"prefetch", {at(0, 2)}, stream, host_id}}));
}

TEST_F(MemoryAdviser, AdviceThatCannotBeGivenAnewIsLostAndSaysSo)
{
  adviser.advise(at(0, 2), reads);
  driver->on_call = [&](driver_call const& call) {
    bool const bad            = call.advice == memory_advice::read_mostly;
    driver->answers["advise"] = bad ? refused : status{};
  };
  auto const left = adviser.to_host(std::vector{at(0, 2)}, stream);
  EXPECT_TRUE(left.moved.ok());
  EXPECT_EQ(left.advised.native_error, 999);
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, WhatIsFreedWhileItLeavesHasNoAdviceAfterwards)
{
  adviser.advise(at(0, 2), reads);
  std::future<status> freed;
  driver->on_call = [&](driver_call const& call) {
    if (call.name != "synchronize") { return; }
    // Its advice is taken back just now, for a moment: who frees must not take that for none.
    freed = std::async(std::launch::async, [&] { return adviser.take_back(at(0, 2)); });
    freed.wait_for(std::chrono::milliseconds{100});
  };
  EXPECT_TRUE(adviser.to_host(std::vector{at(0, 2)}, stream).moved.ok());
  EXPECT_TRUE(freed.get().ok());
  EXPECT_EQ(driver->take_calls().back(), told(at(0, 2), memory_advice::unset_read_mostly));
  EXPECT_EQ(adviser.advised_bytes(), 0U);
}

TEST_F(MemoryAdviser, WhatCannotBeUnsetDoesNotCountAsLeft)
{
  adviser.advise(at(0, 2), reads);
  driver->on_call = [&](driver_call const& call) {
    bool const bad            = call.advice == memory_advice::unset_read_mostly;
    driver->answers["advise"] = bad ? refused : status{};
  };
  EXPECT_FALSE(adviser.to_host(std::vector{at(0, 2)}, stream).moved.ok());
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
  adviser.advise(at(0, 2), no_reads);  // refused as well
  EXPECT_EQ(adviser.advised_bytes(), blocks(2));
}

TEST_F(MemoryAdviser, WhatBelongsToTheHostIsLeftOutOfATouch)
{
  adviser.advise(at(1, 2), to_be_on_host);
  adviser.advise(at(4), {true, preferred_place::device});
  adviser.advise(at(5), {true, preferred_place::host});  // readers get copies all the same
  EXPECT_EQ(adviser.without_used_on_host(at(0, 6)), (std::vector<memory_range>{at(0), at(3, 3)}));
}

}  // namespace
}  // namespace rmm_uvm
