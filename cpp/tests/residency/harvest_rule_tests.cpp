// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/harvest_rule.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace rmm_uvm {
namespace {

constexpr std::size_t block = va_block_bytes;

[[nodiscard]] harvest_claims offered(std::size_t bytes, std::size_t claimed)
{
  return {true, bytes, claimed, 0};
}

TEST(HarvestGrant, OfferIsGrantedUpToWhatIsLeftOfIt)
{
  auto const plenty = 100 * block;
  EXPECT_EQ(granted_bytes(4 * block, offered(10 * block, 0), plenty, 0), 4 * block);
  EXPECT_EQ(granted_bytes(4 * block, offered(10 * block, 8 * block), plenty, 0), 2 * block);
  EXPECT_EQ(granted_bytes(4 * block, offered(10 * block, 10 * block), plenty, 0), 0U);
}

TEST(HarvestGrant, OfferGrantsNoMoreThanIsFreeWhereAStrangerTookMemoryThatItKnowsNothingOf)
{
  harvest_claims const now{true, 50 * block, 9 * block, 3 * block};
  EXPECT_EQ(granted_bytes(100 * block, now, 20 * block, 5 * block), 12 * block);
  EXPECT_EQ(granted_bytes(100 * block, now, 8 * block, 5 * block), 0U);
  EXPECT_EQ(granted_bytes(100 * block, now, 900 * block, 5 * block), 41 * block);
}

TEST(HarvestGrant, OfferThatFellBelowClaimsGrantsNothingWhateverIsFree)
{
  EXPECT_EQ(granted_bytes(block, offered(2 * block, 8 * block), 100 * block, 0), 0U);
  EXPECT_EQ(granted_bytes(block, offered(0, 0), 100 * block, 0), 0U);
}

TEST(HarvestGrant, WithoutOfferFreeMemoryIsGrantedLessReserveAndWhatIsComing)
{
  harvest_claims const now{false, 0, 9 * block, 3 * block};
  EXPECT_EQ(granted_bytes(100 * block, now, 20 * block, 5 * block), 12 * block);
  EXPECT_EQ(granted_bytes(100 * block, now, 8 * block, 5 * block), 0U);
  EXPECT_EQ(granted_bytes(100 * block, now, 4 * block, 5 * block), 0U);
}

TEST(HarvestGrant, BytesAreGrantedInWholeBlocks)
{
  EXPECT_EQ(granted_bytes(3 * block - 1, offered(10 * block, 0), 9 * block, 0), 2 * block);
  EXPECT_EQ(granted_bytes(9 * block, {}, 5 * block + 7, block), 4 * block);
  EXPECT_EQ(granted_bytes(block - 1, offered(10 * block, 0), 9 * block, 0), 0U);
}

TEST(HarvestExcess, ClaimsAboveTheOfferAreTheExcess)
{
  EXPECT_EQ(excess_bytes(offered(4 * block, 10 * block), 0), 6 * block);
  EXPECT_EQ(excess_bytes(offered(10 * block, 4 * block), 0), 0U);
}

TEST(HarvestExcess, ShortageCountsWithAndWithoutOfferUpToWhatIsClaimed)
{
  EXPECT_EQ(excess_bytes({false, 0, 10 * block, 0}, 3 * block), 3 * block);
  EXPECT_EQ(excess_bytes({false, 0, 10 * block, 0}, 30 * block), 10 * block);
  EXPECT_EQ(excess_bytes(offered(4 * block, 10 * block), 7 * block), 7 * block);
  EXPECT_EQ(excess_bytes({}, 7 * block), 0U);
}

TEST(HarvestShare, SharesAreInProportionAndRoundedUp)
{
  EXPECT_EQ(give_back_bytes(60 * block, 100 * block, 50 * block), 30 * block);
  EXPECT_EQ(give_back_bytes(40 * block, 100 * block, 50 * block), 20 * block);
  EXPECT_EQ(give_back_bytes(1 * block, 100 * block, 1), block);
  EXPECT_EQ(give_back_bytes(5 * block, 5 * block, 50 * block), 5 * block);
  EXPECT_EQ(give_back_bytes(0, 100 * block, 50 * block), 0U);
  EXPECT_EQ(give_back_bytes(5 * block, 5 * block, 0), 0U);
}

TEST(HarvestShare, SharesOfAllAreTogetherAtLeastTheExcessAndHardlyMore)
{
  std::minstd_rand random{7};  // NOLINT: the same every time
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::size_t> held(1 + random() % 12);
    for (auto& each : held) {
      each = (random() % 5000) * block;
    }
    auto const claimed = std::accumulate(held.begin(), held.end(), std::size_t{0});
    auto const excess  = claimed == 0 ? 0 : random() % claimed;
    std::size_t shares = 0;
    for (auto const each : held) {
      auto const share = give_back_bytes(each, claimed, excess);
      EXPECT_LE(share, each);
      shares += share;
    }
    EXPECT_GE(shares, excess);
    EXPECT_LE(shares, excess + (held.size() + 1) * block);
  }
}

TEST(HarvestShare, ShareOfTheLargestHoldingsThatABoardCountsDoesNotOverflow)
{
  auto const most = std::size_t{0xffff'ffff} * block;
  EXPECT_EQ(give_back_bytes(most / 2 / block * block, most, most - block),
            most / 2 / block * block);
}

TEST(HarvestShare, SharesOfManyOfTheLargestHoldingsAreTogetherAtLeastTheExcess)
{
  auto const each    = std::size_t{0xffff'ffff} * block;
  auto const claimed = 64 * each;
  for (auto const excess : {claimed / 3, claimed - block, claimed / 2 + 1, block}) {
    auto const share = give_back_bytes(each, claimed, excess);
    EXPECT_LE(share, each);
    EXPECT_GE(64 * share, excess);
    EXPECT_LE(64 * share, excess + 65 * 64 * block);
  }
}

TEST(HarvestHolding, PlacedBytesStayClaimedUntilTheyAreReleased)
{
  auto const placed = harvest_holding{}.claimed(4 * block).placed(3 * block);
  EXPECT_EQ(placed.claimed_bytes, 4 * block);
  EXPECT_EQ(placed.coming_bytes, block);
  auto const left = placed.released(2 * block);
  EXPECT_EQ(left.claimed_bytes, 2 * block);
  EXPECT_EQ(left.coming_bytes, block);
}

TEST(HarvestHolding, CancelledBytesAreOnlyThoseThatHaveYetToCome)
{
  auto const left = harvest_holding{}.claimed(4 * block).placed(3 * block).cancelled(9 * block);
  EXPECT_EQ(left.claimed_bytes, 3 * block);
  EXPECT_EQ(left.coming_bytes, 0U);
}

TEST(HarvestHolding, MoreThanThereIsEndsAtNothing)
{
  auto const none = harvest_holding{}.claimed(block).released(9 * block).placed(block);
  EXPECT_EQ(none.claimed_bytes, 0U);
  EXPECT_EQ(none.coming_bytes, 0U);
}

// The lender without a board

TEST(FreeMemoryLender, GrantsFreeMemoryLessTheReserveAndItsOwnThatIsComing)
{
  free_memory_lender lender;
  EXPECT_EQ(lender.claim(1, 4 * block, 10 * block, 4 * block), 4 * block);
  EXPECT_EQ(lender.claim(1, 4 * block, 10 * block, 4 * block), 2 * block);
  lender.placed(1, 6 * block);  // free memory shows them now
  EXPECT_EQ(lender.claim(1, 4 * block, 4 * block, 4 * block), 0U);
  EXPECT_EQ(lender.held(1), 6 * block);
  lender.release(1, 6 * block);
  EXPECT_EQ(lender.held(1), 0U);
}

TEST(FreeMemoryLender, CancelledClaimIsThereForTheNext)
{
  free_memory_lender lender;
  ASSERT_EQ(lender.claim(0, 4 * block, 4 * block, 0), 4 * block);
  ASSERT_EQ(lender.claim(0, block, 4 * block, 0), 0U);
  lender.cancel(0, 4 * block);
  EXPECT_EQ(lender.claim(0, block, 4 * block, 0), block);
}

TEST(FreeMemoryLender, DevicesDoNotKnowOfOneAnotherAndUnknownOnesGrantNothing)
{
  free_memory_lender lender;
  EXPECT_EQ(lender.claim(0, block, block, 0), block);
  EXPECT_EQ(lender.claim(1, block, block, 0), block);
  for (int const device_id : {-1, free_memory_lender::most_devices}) {
    EXPECT_EQ(lender.claim(device_id, block, block, 0), 0U);
    lender.placed(device_id, block);
    lender.cancel(device_id, block);
    lender.release(device_id, block);
    EXPECT_EQ(lender.held(device_id), 0U);
    EXPECT_EQ(lender.excess(device_id, block), 0U);
  }
}

TEST(FreeMemoryLender, ShortageComesBackWholeAndNobodyIsToldOfOffers)
{
  free_memory_lender lender;
  ASSERT_EQ(lender.claim(0, 8 * block, 8 * block, 0), 8 * block);
  EXPECT_EQ(lender.excess(0), 0U);
  EXPECT_EQ(lender.excess(0, 2 * block + 1), 3 * block);
  EXPECT_EQ(lender.excess(0, 100 * block), 8 * block);
  EXPECT_FALSE(lender.busy(0));
  EXPECT_FALSE(lender.offer(0, block));
  EXPECT_EQ(lender.claimed_by_others(0), 0U);
}

}  // namespace
}  // namespace rmm_uvm
