// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/fault_in_estimate.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

TEST(FaultInEstimate, WhatComesUnaskedIsCountedFromTheBeginning)
{
  fault_in_estimate estimate{1000, 500};
  estimate.to_host(40);
  estimate.observe(1010, 500);
  EXPECT_EQ(estimate.faulted_bytes(), 10U);
  EXPECT_EQ(estimate.beside_bytes(), 10U);
}

TEST(FaultInEstimate, WhatWasAskedAndComesIsNotCounted)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.to_device(10, true);
  EXPECT_EQ(estimate.beside_bytes(), 0U);  // under way: no negative figure
  estimate.observe(10, 0);
  EXPECT_EQ(estimate.faulted_bytes(), 0U);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
}

TEST(FaultInEstimate, WhatLookedUnaskedAndIsAskedThenCountsAsIfNobodyHadLooked)
{
  fault_in_estimate looked{0, 0};
  looked.observe(0, 10);  // the host read them
  looked.observe(0, 0);   // and then they were asked there
  fault_in_estimate unlooked{0, 0};
  for (auto* const estimate : {&looked, &unlooked}) {
    estimate->to_host(40);
    estimate->again_to_device(8);  // nothing had left unasked: these are there
    estimate->observe(8, 0);
    EXPECT_EQ(estimate->faulted_bytes(), 8U);
    EXPECT_EQ(estimate->beside_bytes(), 8U);
  }
}

TEST(FaultInEstimate, WhatLookedUnaskedAndCameBackIsNotTakenBackTwice)
{
  fault_in_estimate estimate{0, 0};
  estimate.observe(0, 10);
  estimate.again_to_device(10);
  estimate.observe(10, 0);  // a second figure that is smaller: no more is away than nothing
  estimate.to_host(40);
  estimate.again_to_device(8);
  estimate.observe(18, 0);
  EXPECT_EQ(estimate.faulted_bytes(), 8U);
}

TEST(FaultInEstimate, WhatFaultedInAndIsAskedThenMovesNothingAndIsBesideNoMore)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(10, 0);
  estimate.to_device(10, true);
  estimate.observe(10, 0);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
  EXPECT_EQ(estimate.peak_bytes(), 10U);
  EXPECT_EQ(estimate.faulted_bytes(), 10U);
}

TEST(FaultInEstimate, WhatFaultsInAgainIsCountedAgainOnceAllThatWasAskedCame)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(10, 0);
  estimate.to_device(10, true);  // was there
  estimate.to_host(10);
  auto hidden = estimate;
  hidden.earlier_came();  // of what was asked before: it was not
  estimate.earlier_came();
  estimate.earlier_came();
  estimate.observe(20, 0);
  EXPECT_EQ(estimate.faulted_bytes(), 20U);
  EXPECT_EQ(estimate.beside_bytes(), 10U);
  hidden.observe(20, 0);
  EXPECT_EQ(hidden.faulted_bytes(), 10U);  // it may have been what was asked
  EXPECT_EQ(hidden.beside_bytes(), 10U);
}

TEST(FaultInEstimate, MoreThanIsBelievedOnTheHostIsOtherMemorys)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(100, 0);
  EXPECT_EQ(estimate.beside_bytes(), 40U);
  estimate.to_host(40);  // and does not count once there is more
  estimate.observe(100, 0);
  EXPECT_EQ(estimate.beside_bytes(), 40U);
}

TEST(FaultInEstimate, WhatIsForgottenIsTakenToHaveFaultedIn)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(20, 0);
  estimate.forget(10);
  EXPECT_EQ(estimate.beside_bytes(), 10U);
  estimate.forget(30);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
}

TEST(FaultInEstimate, WhatLeftUnaskedAndCameBackIsNotBeside)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(0, 10);  // the CPU read it
  estimate.observe(10, 10);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
  EXPECT_EQ(estimate.faulted_bytes(), 10U);
  estimate.observe(10, 20);
  estimate.again_to_device(20);  // of which 10 may be away
  estimate.observe(20, 20);
  EXPECT_EQ(estimate.faulted_bytes(), 10U);
}

TEST(FaultInEstimate, WhatLeftForPagesThatKernelsMadeHidesNothing)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(0, 10);
  estimate.made(8);
  estimate.observe(12, 10);
  EXPECT_EQ(estimate.beside_bytes(), 10U);
}

TEST(FaultInEstimate, TwinOfWhatCameBeforeIsNotMoreForIt)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(12, 0);
  estimate.made(8);
  EXPECT_EQ(estimate.beside_bytes(), 12U);
}

TEST(FaultInEstimate, WhatIsExpectedByFaultsIsCountedAndNotBeside)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.to_device(10, false);
  estimate.observe(10, 0);
  EXPECT_EQ(estimate.faulted_bytes(), 10U);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
}

TEST(FaultInEstimate, WhatWasFoundIsNotBesideAndTheRestOfItsBlocksIsNotOnTheHost)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(12, 0);
  estimate.found(20, 5);  // blocks of 20, of which 5 came
  EXPECT_EQ(estimate.beside_bytes(), 7U);
  EXPECT_EQ(estimate.on_host_bytes(), 20U);
  EXPECT_EQ(estimate.faulted_bytes(), 12U);
}

TEST(FaultInEstimate, WhatWasLookedForInVainIsNotBeside)
{
  fault_in_estimate estimate{0, 0};
  estimate.to_host(40);
  estimate.observe(12, 0);
  estimate.not_found(10);
  EXPECT_EQ(estimate.beside_bytes(), 2U);
  estimate.not_found(10);
  EXPECT_EQ(estimate.beside_bytes(), 0U);
  estimate.observe(15, 0);
  EXPECT_EQ(estimate.beside_bytes(), 3U);
}

}  // namespace
}  // namespace rmm_uvm
