// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a manager does when it takes blocks over, when its budget changes and when it ends.
#include "residency_neighbors_fixture.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::driver_call;
using tests::slab_address;

class BudgetChanges : public tests::ResidencyNeighbors {
 protected:
  /** @brief A manager of 8 blocks takes over a slab of 32 that was used before. */
  void adopt()
  {
    make();
    manager->adopt([this] { ++published; });
  }
  void end()
  {
    manager->retire([this] { ++published; });
  }
  [[nodiscard]] bool asked(char const* name)
  {
    auto const made = driver->take_calls();
    return std::any_of(
      made.begin(), made.end(), [name](driver_call const& each) { return each.name == name; });
  }
  [[nodiscard]] block_record record_of(std::size_t number)
  {
    block_record found;
    ledger_view view{ledger};
    view.each(at(number), [&found](block_record const& block, memory_range) { found = block; });
    return found;
  }

  int published{0};
};

TEST_F(BudgetChanges, WhatIsTakenOverCountsAsResidentAndLiveAndInDoubt)
{
  adopt();
  EXPECT_EQ(published, 1);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(32));
  EXPECT_FALSE(manager->all_present());
  EXPECT_FALSE(record_of(0).dead());
  EXPECT_FALSE(record_of(0).present(1));
}

TEST_F(BudgetChanges, WhatIsTakenOverAndTooMuchLeavesWithItsContents)
{
  adopt();
  manager->run_pending();
  EXPECT_LE(manager->statistics().resident_bytes, blocks(8));
  EXPECT_EQ(manager->statistics().dropped_bytes, 0U);
  EXPECT_FALSE(asked("discard"));
}

TEST_F(BudgetChanges, ARequestBringsWhatIsInDoubt)
{
  adopt();
  manager->run_pending();
  static_cast<void>(driver->take_calls());
  touch(31, 1);
  EXPECT_EQ(moves(), (calls{fetched(31, 1)}));
}

TEST_F(BudgetChanges, FreesOfAPartAreNoProofThatABlockIsDead)
{
  adopt();
  memory_range const part{slab_address, va_block_bytes / 2};
  manager->on_allocate(part, stream);
  manager->on_free(part, stream);
  manager->on_free({part.end(), part.bytes}, stream);
  EXPECT_TRUE(record_of(0).untold);
  EXPECT_FALSE(record_of(0).dead());
}

TEST_F(BudgetChanges, OneAllocationOfAWholeBlockTellsWhatLivesInIt)
{
  adopt();
  allocate(0, 1);
  EXPECT_FALSE(record_of(0).untold);
  EXPECT_EQ(record_of(0).live_bytes, va_block_bytes);
  EXPECT_TRUE(record_of(1).untold);
  free(0, 1);
  EXPECT_TRUE(record_of(0).dead());
  EXPECT_FALSE(record_of(0).unfenced);
}

TEST_F(BudgetChanges, OneFencedFreeOfAWholeBlockTellsThatNothingLivesInIt)
{
  adopt();
  free(0, 1);
  EXPECT_TRUE(record_of(0).dead());
  driver->capture = capture_state::capturing;  // no fence can be had
  free(1, 1);
  EXPECT_FALSE(record_of(1).dead());
}

TEST_F(BudgetChanges, ASmallerBudgetHasTheRestLeaveAndALargerOneHasRoom)
{
  make();
  allocate(0, 4);
  allocate(4, 4);  // may be in use still, and stays
  manager->change_budget(blocks(4), blocks(3));
  manager->run_pending();  // nobody asks for anything meanwhile
  EXPECT_LE(manager->statistics().resident_bytes, blocks(4));
  EXPECT_EQ(manager->statistics().budget_bytes, blocks(4));
  EXPECT_LE(manager->statistics().ahead_bytes, blocks(4));
  manager->change_budget(blocks(16), blocks(15));
  allocate(8, 12);
  EXPECT_EQ(manager->statistics().over_budget, 0U);
  EXPECT_GT(manager->statistics().resident_bytes, blocks(12));
}

TEST_F(BudgetChanges, ASmallerBudgetThanWhatFittedHasTheRestLeaveThoughNobodyMarkedItsUses)
{
  budget = slab.bytes;
  make();
  allocate(0, 8);
  manager->change_budget(blocks(4), blocks(3));
  manager->run_pending();
  EXPECT_LE(manager->statistics().resident_bytes, blocks(4));
}

TEST_F(BudgetChanges, AtTheEndWhatLiesOnNeighboursGoesToTheHostAndOffersEnd)
{
  offers_memory = true;
  evict_first(3);
  EXPECT_GT(lends->claimed[1] + lends->claimed[2], 0U);
  EXPECT_FALSE(lends->offers.empty());
  static_cast<void>(driver->take_calls());
  end();
  EXPECT_EQ(moves(), (calls{to_host(0, 3)}));
  EXPECT_EQ(lends->claimed[1] + lends->claimed[2], 0U);
  EXPECT_TRUE(lends->offers.empty());
  EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
}

TEST_F(BudgetChanges, AtTheEndPinsAreForgottenAndAllIsInDoubt)
{
  make();
  allocate(0, 4);
  manager->pin(at(0, 2));
  end();
  EXPECT_EQ(published, 1);
  EXPECT_EQ(manager->statistics().pinned_bytes, 0U);
  EXPECT_EQ(record_of(0).pins, 0U);
  EXPECT_EQ(ledger.doubtful_runs(slab, 1), (std::vector<memory_range>{slab}));
}

TEST_F(BudgetChanges, WhoStillAsksAfterTheEndIsAnsweredAndNothingIsMovedOrDropped)
{
  make();
  allocate(0, 8);
  end();
  static_cast<void>(driver->take_calls());
  allocate(8, 8);
  touch(0, 2);
  manager->prefetch(at(16, 2), stream);
  EXPECT_EQ(manager->evict(at(0, 4)), 0U);
  free(0, 4);
  EXPECT_TRUE(record_of(0).unfenced);
  manager->run_pending();
  manager->flush();
  manager->change_budget(blocks(4), blocks(3));
  EXPECT_TRUE(moves().empty());
}

TEST_F(BudgetChanges, WhatIsHandedOutWhileABudgetEndsWaitsForTheLastDiscard)
{
  make();
  allocate(0, 8);
  free(0, 4);
  manager->pin(at(7));
  std::atomic<bool> handed_out{false};
  bool too_early = false;
  std::thread ends;
  std::thread asks;
  driver->on_call = [&](driver_call const& call) {
    if (call.name != "discard") { return; }
    ends = std::thread{[&] { end(); }};
    while (manager->statistics().pinned_bytes > 0) {  // until it begins no call any more
      std::this_thread::yield();
    }
    asks = std::thread{[&] {
      allocate(0, 4);
      handed_out = true;
    }};
    while (!handed_out && manager->statistics().waits == 0) {
      std::this_thread::yield();
    }
    too_early = handed_out;
  };
  allocate(8, 4);
  ASSERT_TRUE(asks.joinable());
  ends.join();
  asks.join();
  EXPECT_FALSE(too_early);
  EXPECT_EQ(published, 1);
}

TEST_F(BudgetChanges, WhoStillAsksAfterTheEndTellsNothingOfWhatTheNextBudgetTookOver)
{
  make();
  allocate(0, 8);
  end();
  residency_manager next{driver, ledger, residency_settings::of(blocks(8)), &adviser};
  next.adopt([] {});
  free(0, 1);
  manager->on_allocate({slab_address, va_block_bytes / 2}, stream);
  EXPECT_TRUE(record_of(0).untold);
  EXPECT_EQ(record_of(0).live_bytes, va_block_bytes);
}

/** @brief The object that resources hold, over a driver that records every call. */
class ManagedResidencyBudget : public testing::Test {
 protected:
  ManagedResidencyBudget() { residency.on_slab(slab, nullptr, prefetch_mode::automatic); }
  [[nodiscard]] static residency_settings settings_of(std::size_t count)
  {
    auto settings       = residency_settings::of(blocks(count));
    settings.background = false;
    return settings;
  }

  memory_range slab{slab_address, blocks(16)};
  std::shared_ptr<tests::recording_driver> driver{std::make_shared<tests::recording_driver>()};
  managed_residency residency{driver, make_epoch_source(*driver)};
};

TEST_F(ManagedResidencyBudget, WithoutABudgetQuestionsAboutOneHaveSensibleAnswers)
{
  EXPECT_FALSE(residency.budget_statistics());
  EXPECT_FALSE(residency.under_pressure());
  EXPECT_EQ(residency.pinnable_bytes(), 0U);
  EXPECT_EQ(residency.take_live_blocks(true).peak, 0U);
  EXPECT_FALSE(residency.change_budget(blocks(8), blocks(7)));
  EXPECT_FALSE(residency.run_pending_piece());
  residency.pin(slab);
  residency.unpin(slab);
  residency.run_pending();
  residency.flush();
  residency.end_budget();
  EXPECT_TRUE(residency.all_present());
}

TEST_F(ManagedResidencyBudget, ABudgetStartsChangesAndEnds)
{
  residency.start_budget(settings_of(8));
  EXPECT_TRUE(residency.under_pressure());
  EXPECT_EQ(residency.budget_statistics().value().resident_bytes, slab.bytes);
  EXPECT_EQ(residency.pinnable_bytes(), blocks(1));
  EXPECT_TRUE(residency.change_budget(blocks(32), blocks(31)));
  EXPECT_FALSE(residency.under_pressure());
  EXPECT_EQ(residency.budget_statistics().value().budget_bytes, blocks(32));
  residency.end_budget();
  EXPECT_FALSE(residency.budget_statistics());
  EXPECT_FALSE(residency.all_present());  // all is in doubt
  EXPECT_TRUE(
    residency.on_allocate(block_range(slab_address, 0, 2), nullptr, prefetch_mode::automatic));
}

TEST_F(ManagedResidencyBudget, ANewBudgetTakesThePlaceOfTheOneBefore)
{
  residency.start_budget(settings_of(8));
  residency.run_pending();
  auto settings   = settings_of(4);
  settings.policy = eviction_policy::fifo;
  residency.start_budget(settings);
  auto const kept = residency.budget_statistics().value();
  EXPECT_EQ(kept.policy, eviction_policy::fifo);
  EXPECT_EQ(kept.budget_bytes, blocks(4));
  EXPECT_EQ(kept.resident_bytes, slab.bytes);  // nobody knows what left meanwhile
  EXPECT_EQ(kept.evicted_bytes, 0U);
}

TEST_F(ManagedResidencyBudget, SlabsComeAndGoUnderABudgetAndAfterIt)
{
  residency.start_budget(settings_of(8));
  memory_range const other{slab_address + blocks(64), blocks(4)};
  residency.on_slab(other, nullptr, prefetch_mode::automatic);
  EXPECT_EQ(residency.budget_statistics().value().resident_bytes, slab.bytes);
  residency.end_budget();
  residency.on_slab_free(other.address);
  residency.on_slab_free(slab.address);
  EXPECT_EQ(residency.ledger().slab_bytes(), 0U);
  residency.start_budget(settings_of(8));
  EXPECT_EQ(residency.budget_statistics().value().resident_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm
