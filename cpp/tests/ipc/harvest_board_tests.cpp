// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/board_directory.hpp"
#include "../support/other_process.hpp"

#include <rmm_uvm/ipc/board_lender.hpp>
#include <rmm_uvm/ipc/harvest_board.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm::ipc {
namespace {

using tests::board_directory;
using tests::device_named;
using tests::other_process;
using tests::plenty;

constexpr std::size_t block = va_block_bytes;

class HarvestBoard : public testing::Test {
 protected:
  board_directory const directory;
  device_uuid const gpu                       = device_named(1);
  std::unique_ptr<harvest_board> const owner  = directory.join();
  std::unique_ptr<harvest_board> const first  = directory.join();
  std::unique_ptr<harvest_board> const second = directory.join();
};

// Claims and offers

TEST_F(HarvestBoard, ClaimantsShareAnOfferAndNeverExceedIt)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  EXPECT_EQ(first->claim(gpu, 6 * block, plenty, 0), 6 * block);
  EXPECT_EQ(second->claim(gpu, 6 * block, plenty, 0), 4 * block);
  EXPECT_EQ(second->claim(gpu, block, 100 * block, 0), 0U);
  EXPECT_EQ(owner->claimed_by_others(gpu), 10 * block);
  EXPECT_EQ(first->held(gpu), 6 * block);
  first->release(gpu, 2 * block);
  EXPECT_EQ(second->claim(gpu, 6 * block, plenty, 0), 2 * block);
}

TEST_F(HarvestBoard, WithoutOfferFreeMemoryIsClaimedOnceByAllTogether)
{
  EXPECT_EQ(first->claim(gpu, 6 * block, 10 * block, 2 * block), 6 * block);
  EXPECT_EQ(second->claim(gpu, 6 * block, 10 * block, 2 * block), 2 * block);
  first->placed(gpu, 6 * block);  // 4 are free as the driver sees it, of which 2 are claimed
  EXPECT_EQ(second->claim(gpu, 6 * block, 4 * block, 2 * block), 0U);
  second->cancel(gpu, 2 * block);
  EXPECT_EQ(second->claim(gpu, 6 * block, 4 * block, 2 * block), 2 * block);
}

TEST_F(HarvestBoard, OfferThatFallsIsAnExcessThatClaimantsShare)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  ASSERT_EQ(first->claim(gpu, 6 * block, plenty, 0), 6 * block);
  ASSERT_EQ(second->claim(gpu, 4 * block, plenty, 0), 4 * block);
  EXPECT_EQ(first->excess(gpu), 0U);
  ASSERT_TRUE(owner->offer(gpu, 5 * block));
  EXPECT_EQ(first->excess(gpu), 3 * block);
  EXPECT_EQ(second->excess(gpu), 2 * block);
  ASSERT_TRUE(owner->offer(gpu, 0));
  while (owner->claimed_by_others(gpu) != 0) {
    first->release(gpu, first->excess(gpu));
    second->release(gpu, second->excess(gpu));
  }
  EXPECT_EQ(first->claim(gpu, block, 100 * block, 0), 0U);
}

TEST_F(HarvestBoard, GivingBackInTurnEndsAtTheOfferWhatevertheOrder)
{
  ASSERT_TRUE(owner->offer(gpu, 1000 * block));
  ASSERT_EQ(first->claim(gpu, 900 * block, plenty, 0), 900 * block);
  ASSERT_EQ(second->claim(gpu, 100 * block, plenty, 0), 100 * block);
  ASSERT_TRUE(owner->offer(gpu, 333 * block));
  int rounds = 0;
  while (owner->claimed_by_others(gpu) > 333 * block) {
    second->release(gpu, second->excess(gpu));
    first->release(gpu, first->excess(gpu));
    ASSERT_LT(++rounds, 100);
  }
  EXPECT_GE(owner->claimed_by_others(gpu), 330 * block);
}

TEST_F(HarvestBoard, LeastOfSeveralOffersCounts)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  ASSERT_TRUE(second->offer(gpu, 3 * block));
  EXPECT_EQ(first->claim(gpu, 6 * block, plenty, 0), 3 * block);
  second->withdraw(gpu);
  EXPECT_EQ(first->claim(gpu, 6 * block, plenty, 0), 6 * block);
}

TEST_F(HarvestBoard, OfferIsGrantedFromWhatIsFreeOnly)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  EXPECT_EQ(first->claim(gpu, 6 * block, 5 * block, 2 * block), 3 * block);
  EXPECT_EQ(second->claim(gpu, 6 * block, 5 * block, 2 * block), 0U);  // those are on their way
  EXPECT_EQ(second->claim(gpu, 6 * block, 9 * block, 2 * block), 4 * block);
}

TEST_F(HarvestBoard, WithdrawnOfferLeavesFreeMemoryToDecide)
{
  ASSERT_TRUE(owner->offer(gpu, 0));
  EXPECT_EQ(first->claim(gpu, block, 10 * block, 0), 0U);
  owner->withdraw(gpu);
  EXPECT_EQ(first->claim(gpu, block, 10 * block, 0), block);
  EXPECT_EQ(first->excess(gpu), 0U);
  EXPECT_EQ(first->excess(gpu, block), block);  // its free memory fell below the reserve
}

TEST_F(HarvestBoard, BusyIsHeardByOthersOnly)
{
  EXPECT_FALSE(first->busy(gpu));
  ASSERT_TRUE(owner->set_busy(gpu, true));
  EXPECT_TRUE(first->busy(gpu));
  EXPECT_FALSE(owner->busy(gpu));
  ASSERT_TRUE(owner->offer(gpu, block));  // says nothing about links
  EXPECT_TRUE(first->busy(gpu));
  ASSERT_TRUE(owner->set_busy(gpu, false));
  EXPECT_FALSE(first->busy(gpu));
}

TEST_F(HarvestBoard, DevicesDoNotKnowOfOneAnotherAndThereAreSixteen)
{
  for (std::uint8_t i = 0; i < harvest_board::most_devices; ++i) {
    ASSERT_TRUE(owner->offer(device_named(i), (i + 1) * block));
  }
  EXPECT_FALSE(owner->offer(device_named(16), block));
  EXPECT_EQ(first->claim(device_named(16), block, 100 * block, 0), 0U);
  for (std::uint8_t i = 0; i < harvest_board::most_devices; ++i) {
    EXPECT_EQ(first->claim(device_named(i), 100 * block, plenty, 0), (i + 1) * block);
  }
}

TEST_F(HarvestBoard, LargestNumbersDoNotOverflow)
{
  ASSERT_TRUE(owner->offer(gpu, SIZE_MAX));
  auto const most = std::size_t{0xffff'ffff} * block;
  EXPECT_EQ(first->claim(gpu, SIZE_MAX, SIZE_MAX, 0), most);
  owner->withdraw(gpu);
  EXPECT_EQ(first->claim(gpu, SIZE_MAX, SIZE_MAX, 0), 0U);
  EXPECT_EQ(first->held(gpu), most);
  EXPECT_EQ(first->excess(gpu, SIZE_MAX), most);
}

// Who lives

TEST_F(HarvestBoard, ClaimsOfAKilledProcessAreFree)
{
  ASSERT_TRUE(owner->offer(gpu, 4 * block));
  other_process killed{
    [&] { return directory.join().release()->claim(gpu, 4 * block, plenty, 0) == 4 * block; }};
  ASSERT_TRUE(killed.succeeded());
  EXPECT_EQ(first->claim(gpu, block, plenty, 0), 0U);
  EXPECT_EQ(owner->claimed_by_others(gpu), 4 * block);
  killed.kill();
  EXPECT_EQ(owner->claimed_by_others(gpu), 0U);
  EXPECT_EQ(first->claim(gpu, 4 * block, plenty, 0), 4 * block);
}

// Shares of budgets

TEST_F(HarvestBoard, SharesAreSeenByOthersOfTheDeviceAndEndWhenTheyAreTakenBack)
{
  std::vector<budget_share> found(budget_sharing::most_others);
  EXPECT_EQ(first->shares_of_others(gpu, found), 0U);
  EXPECT_TRUE(first->share(gpu, {9 * block + 1, 2 * block, 5 * block, 4 * block}));
  EXPECT_TRUE(second->share(device_named(2), {block, block, block}));
  EXPECT_EQ(first->shares_of_others(gpu, found), 0U);
  ASSERT_EQ(second->shares_of_others(gpu, found), 1U);
  EXPECT_EQ(found[0].wanted_bytes, 9 * block);
  EXPECT_EQ(found[0].least_bytes, 2 * block);
  EXPECT_EQ(found[0].most_bytes, 5 * block);
  EXPECT_EQ(found[0].there_bytes, 4 * block);
  EXPECT_TRUE(second->share(gpu, {}));  // one that wants nothing is there too
  EXPECT_EQ(owner->shares_of_others(gpu, found), 2U);
  EXPECT_EQ(owner->shares_of_others(gpu, {found.data(), 1}), 1U);
  first->end_share(gpu);
  second->end_share(device_named(9));
  EXPECT_EQ(owner->shares_of_others(gpu, found), 1U);
  EXPECT_EQ(owner->claimed_by_others(gpu), 0U);  // nothing of it is lent
  EXPECT_EQ(first->claim(gpu, block, 10 * block, 0), block);
}

TEST_F(HarvestBoard, ShareOfAKilledProcessIsGone)
{
  std::vector<budget_share> found(budget_sharing::most_others);
  other_process killed{
    [&] { return directory.join().release()->share(gpu, {block, block, block}); }};
  ASSERT_TRUE(killed.succeeded());
  EXPECT_EQ(first->shares_of_others(gpu, found), 1U);
  killed.kill();
  EXPECT_EQ(first->shares_of_others(gpu, found), 0U);
}

TEST_F(HarvestBoard, ForkedChildNeitherSharesNorSees)
{
  ASSERT_TRUE(first->share(gpu, {block, block, block}));
  ASSERT_TRUE(second->share(gpu, {block, block, block}));
  other_process const child{[&] {
    std::vector<budget_share> found(budget_sharing::most_others);
    first->end_share(gpu);
    return !first->share(gpu, {}) && first->shares_of_others(gpu, found) == 0;
  }};
  EXPECT_TRUE(child.succeeded());
  std::vector<budget_share> found(budget_sharing::most_others);
  EXPECT_EQ(second->shares_of_others(gpu, found), 1U);
}

TEST_F(HarvestBoard, OffersAndBusyLinksOfAKilledProcessAreGone)
{
  other_process killed{[&] {
    auto* const there = directory.join().release();
    return there->offer(gpu, 0) && there->set_busy(gpu, true);
  }};
  ASSERT_TRUE(killed.succeeded());
  EXPECT_EQ(first->claim(gpu, block, 10 * block, 0), 0U);
  EXPECT_TRUE(first->busy(gpu));
  killed.kill();
  EXPECT_FALSE(first->busy(gpu));
  EXPECT_EQ(first->claim(gpu, block, 10 * block, 0), block);
  EXPECT_EQ(first->excess(gpu), 0U);
}

TEST_F(HarvestBoard, ChildDoesNotTakeItsParentsPlaceForItsOwn)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  ASSERT_EQ(first->claim(gpu, 4 * block, plenty, 0), 4 * block);
  other_process const child{[&] {
    first->release(gpu, 4 * block);
    owner->withdraw(gpu);
    return !first->usable().available && first->held(gpu) == 0 &&
           first->claim(gpu, block, plenty, 0) == 0 && !first->offer(gpu, block) &&
           first->excess(gpu, block) == 0 && !first->busy(gpu) &&
           directory.join()->claim(gpu, 10 * block, plenty, 0) == 6 * block;
  }};
  EXPECT_TRUE(child.succeeded());
  EXPECT_EQ(first->held(gpu), 4 * block);
  EXPECT_TRUE(first->usable().available);
}

TEST(HarvestBoardFork, ChildThatLivesOnDoesNotKeepTheClaimsOfItsParent)
{
  board_directory const directory;
  auto const gpu   = device_named(1);
  auto const other = directory.join();
  auto claimant    = directory.join();
  ASSERT_TRUE(other->offer(gpu, block));
  ASSERT_EQ(claimant->claim(gpu, block, plenty, 0), block);
  other_process const child{[] { return true; }};
  claimant.reset();
  EXPECT_EQ(other->claimed_by_others(gpu), 0U);
}

TEST(HarvestBoardJoin, SixtyFifthProcessIsRefusedUntilOneLeaves)
{
  board_directory const directory;
  std::vector<std::unique_ptr<harvest_board>> joined(harvest_board::most_processes);
  for (auto& each : joined) {
    each = directory.join();
    ASSERT_NE(each, nullptr);
  }
  auto const refused = harvest_board::open(directory.path());
  EXPECT_EQ(refused.board, nullptr);
  EXPECT_NE(refused.reason.find("is full: 64 processes"), std::string::npos) << refused.reason;
  joined[17].reset();
  EXPECT_NE(directory.join(), nullptr);
}

TEST(HarvestBoardJoin, PlaceOfTheGoneIsTakenEmpty)
{
  board_directory const directory;
  auto const gpu   = device_named(1);
  auto const owner = directory.join();
  {
    auto const gone = directory.join();
    ASSERT_TRUE(gone->offer(gpu, 5 * block));
    ASSERT_EQ(gone->claim(gpu, 5 * block, plenty, 0), 5 * block);
  }
  auto const next = directory.join();
  EXPECT_EQ(next->held(gpu), 0U);
  EXPECT_EQ(owner->claimed_by_others(gpu), 0U);
  EXPECT_EQ(next->claim(gpu, block, 10 * block, 0), block);
}

TEST(HarvestBoardJoin, DevicesAreForgottenOnlyOnceNobodyIsLeft)
{
  board_directory const directory;
  auto fill = [&](harvest_board& board, std::uint8_t from) {
    for (std::uint8_t i = 0; i < harvest_board::most_devices; ++i) {
      ASSERT_TRUE(board.offer(device_named(static_cast<std::uint8_t>(from + i)), block));
    }
  };
  auto first = directory.join();
  fill(*first, 0);
  auto second = directory.join();
  EXPECT_FALSE(second->offer(device_named(100), block));
  first.reset();
  second.reset();
  fill(*directory.join(), 100);
}

// What people see

TEST_F(HarvestBoard, ViewTellsWhoOffersAndWhoHoldsWhat)
{
  ASSERT_TRUE(owner->offer(gpu, 10 * block));
  ASSERT_EQ(first->claim(gpu, 6 * block, plenty, 0), 6 * block);
  first->placed(gpu, 4 * block);
  auto const view = harvest_board::look(directory.path());
  ASSERT_TRUE(view.readable.available) << view.readable.reason;
  EXPECT_EQ(view.path, directory.file());
  EXPECT_EQ(view.processes.size(), 3U);
  ASSERT_EQ(view.entries.size(), 2U);
  EXPECT_TRUE(view.entries[0].offers);
  EXPECT_EQ(view.entries[0].offered_bytes, 10 * block);
  EXPECT_EQ(view.entries[0].device, gpu);
  EXPECT_FALSE(view.entries[1].offers);
  EXPECT_EQ(view.entries[1].holding.claimed_bytes, 6 * block);
  EXPECT_EQ(view.entries[1].holding.coming_bytes, 2 * block);
  EXPECT_EQ(view.entries[1].process_id, static_cast<std::uint32_t>(::getpid()));
}

TEST(HarvestBoardLook, WithoutAFileThereIsAReasonAndNoneIsMade)
{
  board_directory const directory;
  auto const view = harvest_board::look(directory.path());
  EXPECT_FALSE(view.readable.available);
  EXPECT_NE(view.readable.reason.find("does not exist"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory.file()));
}

// By ordinal

TEST_F(HarvestBoard, LenderNamesDevicesByOrdinalAndGrantsNothingOfOthers)
{
  board_lender owning{directory.join(), {{0, device_named(1)}}};
  board_lender lender{directory.join(), {{3, device_named(1)}, {4, device_named(2)}}};
  ASSERT_TRUE(owning.offer(0, 4 * block));
  EXPECT_EQ(lender.claim(3, 9 * block, plenty, 0), 4 * block);
  lender.placed(3, 2 * block);
  lender.cancel(3, 9 * block);
  EXPECT_EQ(lender.held(3), 2 * block);
  EXPECT_EQ(owning.claimed_by_others(0), 2 * block);
  owning.set_busy(0, true);
  EXPECT_TRUE(lender.busy(3));
  EXPECT_FALSE(lender.busy(4));
  ASSERT_TRUE(owning.offer(0, block));
  EXPECT_EQ(lender.excess(3), block);
  lender.release(3, block);
  EXPECT_EQ(lender.excess(3), 0U);
  owning.withdraw(0);
  EXPECT_EQ(lender.claim(3, block, 8 * block, 0), block);
  for (int const unknown : {-1, 5}) {
    EXPECT_EQ(lender.claim(unknown, block, 100 * block, 0), 0U);
    EXPECT_FALSE(lender.offer(unknown, block));
    EXPECT_EQ(lender.excess(unknown, block), 0U);
    EXPECT_EQ(lender.held(unknown), 0U);
    EXPECT_FALSE(lender.busy(unknown));
    EXPECT_EQ(lender.claimed_by_others(unknown), 0U);
  }
}

}  // namespace
}  // namespace rmm_uvm::ipc
