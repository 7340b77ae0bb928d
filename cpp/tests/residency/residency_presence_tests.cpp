// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Uses while all live blocks were confirmed to be on the device, and what ends that.
#include "residency_manager_fixture.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <chrono>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

class ResidencyPresence : public ResidencyManager {
 protected:
  /** @brief More was handed out than fits, and freed; blocks 16 to 19 are live and there. */
  void make_with_four()
  {
    make();
    reuse(at(0, 8));
    free(0, 8);
    reuse(at(8, 8));
    free(8, 8);
    reuse(at(16, 4));
    static_cast<void>(driver->take_calls());
  }
  [[nodiscard]] std::uint64_t learnt_bytes() const { return manager->statistics().wanted_bytes; }
};

TEST_F(ResidencyPresence, UsesOfWhatIsThereAreNotLearntOnceThatIsConfirmed)
{
  make_with_four();
  touch(16, 4);
  EXPECT_EQ(learnt_bytes(), blocks(4));
  EXPECT_FALSE(manager->confirmed_present());
  EXPECT_TRUE(manager->confirm_present(stream));  // the dead are away, which does not matter
  EXPECT_TRUE(manager->confirmed_present());
  static_cast<void>(driver->take_calls());
  touch(16, 4);
  EXPECT_EQ(learnt_bytes(), blocks(4));
  EXPECT_TRUE(driver->take_calls().empty());
}

TEST_F(ResidencyPresence, NothingIsConfirmedWhileALiveBlockIsAway)
{
  make_with_four();
  EXPECT_EQ(manager->evict(at(17)), blocks(1));
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_FALSE(manager->confirmed_present());
  touch(16, 4);
  EXPECT_TRUE(manager->confirm_present(stream));
}

TEST_F(ResidencyPresence, ItEndsWhenABlockLeavesAndUsesAreLearntAgain)
{
  make_with_four();
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_EQ(manager->evict(at(17)), blocks(1));
  EXPECT_FALSE(manager->confirmed_present());
  touch(16, 4);
  EXPECT_EQ(learnt_bytes(), blocks(4));
  EXPECT_EQ(moves().back(), fetched(17, 1));
}

TEST_F(ResidencyPresence, ItEndsWhenBytesLeaveThatNobodyAskedTo)
{
  make_with_four();
  EXPECT_TRUE(manager->confirm_present(stream));
  driver->counted.device_to_host_bytes += va_block_bytes;
  EXPECT_FALSE(manager->confirmed_present());
  touch(16, 4);
  EXPECT_EQ(learnt_bytes(), blocks(4));
  EXPECT_EQ(moves(), (calls{fetched(16, 4)}));  // any of them may be the one
}

TEST_F(ResidencyPresence, DeadBlocksThatAreDroppedDoNotEndIt)
{
  make_with_four();
  EXPECT_TRUE(manager->confirm_present(stream));
  auto const dropped_bytes = manager->statistics().dropped_bytes;
  reuse(at(20, 4));
  EXPECT_GT(manager->statistics().dropped_bytes, dropped_bytes);
  EXPECT_TRUE(manager->confirmed_present());
}

TEST_F(ResidencyPresence, WhatANewAllocationDidNotGetIsStillBroughtAtItsUse)
{
  make_with_four();
  EXPECT_TRUE(manager->confirm_present(stream));
  reuse(at(20, 4), blocks(1));  // its likes were one block long
  EXPECT_TRUE(manager->confirmed_present());
  static_cast<void>(moves());
  touch(20, 4);
  EXPECT_EQ(moves().back(), fetched(21, 3));
}

TEST_F(ResidencyPresence, WhatIsOnItsWayInAnotherStreamIsWaitedFor)
{
  make_with_four();
  EXPECT_TRUE(manager->confirm_present(stream));
  std::thread other;
  bool waited     = false;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name != "discard_and_prefetch") { return; }
    other            = std::thread{[&] { touch(20, 1); }};
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!waited && std::chrono::steady_clock::now() < until) {
      waited = manager->statistics().waits > 0;
    }
  };
  reuse(at(20, 4));
  driver->on_call = [](tests::driver_call const&) {};
  other.join();
  EXPECT_TRUE(waited);
}

TEST_F(ResidencyPresence, NothingIsConfirmedWhileALiveBlockIsOnItsWay)
{
  make_with_four();
  bool confirmed  = true;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name == "discard_and_prefetch") { confirmed = manager->confirm_present(stream); }
  };
  reuse(at(20, 4));
  EXPECT_FALSE(confirmed);
  EXPECT_TRUE(manager->confirm_present(stream));
}

TEST_F(ResidencyPresence, AllocationsOfWhatIsThereMakeNoCallOnceThatIsConfirmed)
{
  make_with_four();
  reuse(at(20, 3));
  for (bool const confirmed : {false, true}) {
    free(20, 3);
    EXPECT_EQ(confirmed && manager->confirm_present(stream), confirmed);
    static_cast<void>(driver->take_calls());
    reuse(at(20, 2));
    allocate(22, 1);
    EXPECT_EQ(driver->take_calls().empty(), confirmed);
  }
  reuse(at(24, 1));  // and what is not there is brought
  EXPECT_EQ(moves().back(), renewed(24, 1));
}

TEST_F(ResidencyPresence, PredictorIsToldOfAllocationsOnceSomethingLeft)
{
  make(eviction_policy::repeat);
  reuse(at(0, 8));
  free(0, 8);
  reuse(at(8, 4));
  EXPECT_TRUE(manager->confirm_present(stream));
  auto const seen = [this] { return manager->statistics().prediction.seen; };
  auto const then = seen();
  for (int round = 0; round < 20; ++round) {
    reuse(at(12, 1));
    free(12, 1);
  }
  EXPECT_EQ(seen(), then);
  EXPECT_EQ(manager->evict(at(8)), blocks(1));
  touch(8, 1);
  EXPECT_EQ(seen(), then + 21);
}

TEST_F(ResidencyPresence, NothingIsConfirmedWhereTheKernelDriverIsEmulated)
{
  fetch        = false;
  discard_dead = false;
  make(eviction_policy::fifo);
  allocate(0, 4);
  EXPECT_FALSE(manager->confirm_present(stream));
}

TEST_F(ResidencyPresence, WithoutABudgetNothingIsConfirmed)
{
  managed_residency none{driver, make_epoch_source(*driver)};
  EXPECT_FALSE(none.confirm_present(nullptr));
  EXPECT_FALSE(none.confirmed_present());
}

}  // namespace
}  // namespace rmm_uvm
