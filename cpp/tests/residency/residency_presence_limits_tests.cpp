// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// When it is not, or no longer, confirmed that all that lives is on the device.
#include "confirmed_program.hpp"

#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::slab_address;

class ResidencyPresenceLimits : public tests::ConfirmedProgram {
 protected:
  /** @brief Some page of somebody's left, so that blocks are in doubt. */
  void put_in_doubt() { driver->counted.device_to_host_bytes += std::size_t{4096}; }
  void touch_often(int times)
  {
    for (int time = 0; time < times; ++time) {
      touch(0, 2);
    }
  }
};

TEST_F(ResidencyPresenceLimits, NothingIsConfirmedBeforeTheFirstUse)
{
  make();
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_FALSE(manager->confirmed_present());
}

TEST_F(ResidencyPresenceLimits, NothingIsConfirmedWhileMoreIsThereThanFits)
{
  make();
  allocate(0, 8);
  manager->pin(at(0, 8));
  allocate(8, 4);  // nothing can leave
  manager->unpin(at(0, 8));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(12));
  EXPECT_FALSE(manager->confirm_present(stream));
  for (int round = 0; round < 20; ++round) {
    touch(0, 8);
    touch(8, 4);
    manager->run_pending();
  }
  EXPECT_LE(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(ResidencyPresenceLimits, WhatIsBeyondTheBudgetOnceItIsConfirmedLeavesAllTheSame)
{
  make();
  allocate(0, 8);
  free(0, 2);
  EXPECT_TRUE(manager->confirm_present(stream));
  manager->pin(at(2, 6));
  allocate(8, 4);  // two of the dead leave, and no other can
  manager->unpin(at(2, 6));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(10));
  manager->run_pending();
  EXPECT_LE(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(ResidencyPresenceLimits, ASlabThatGoesWhileWhatIsInDoubtIsBroughtIsNotBrought)
{
  make();
  memory_range const other{tests::slab_address + blocks(64), blocks(4)};
  ledger.add_slab(other);
  reuse(at(0, 8));
  free(0, 8);
  reuse(at(8, 3));
  manager->on_allocate(other, stream);
  put_in_doubt();
  bool gone       = false;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name == "capturing" && !gone) {
      gone = true;
      manager->on_slab_free(other);
    }
  };
  static_cast<void>(moves());
  EXPECT_TRUE(manager->confirm_present(stream));
  driver->on_call = [](tests::driver_call const&) {};
  EXPECT_TRUE(gone);
  EXPECT_EQ(moves(), (calls{fetched(8, 3)}));
  EXPECT_LE(manager->statistics().resident_bytes, blocks(4));
}

TEST_F(ResidencyPresenceLimits, WhatDiesOrLeavesWhileWhatIsInDoubtIsBroughtIsNotBrought)
{
  make();
  reuse(at(0, 8));
  free(0, 8);
  reuse(at(8, 8));
  put_in_doubt();
  touch(14, 2);
  bool once       = false;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name != "capturing" || once) { return; }
    once = true;
    manager->on_free(at(8, 4), stream, false);
    static_cast<void>(manager->evict(at(13)));
  };
  EXPECT_FALSE(manager->confirm_present(stream));
  driver->on_call = [](tests::driver_call const&) {};
  auto const made = moves();
  EXPECT_EQ(made.back(), fetched(12, 1));
  EXPECT_EQ(std::count(made.begin(), made.end(), fetched(13, 1)), 0);
}

TEST_F(ResidencyPresenceLimits, ALittleThatIsAwayIsBroughtAndMoreIsNot)
{
  budget = blocks(128);  // of which a sixty-fourth are two
  slab   = {slab_address, blocks(128)};
  make();
  reuse(at(0, 8));
  touch(4, 4);  // and nobody announces the first four
  EXPECT_EQ(manager->evict(at(0, 3)), blocks(3));
  static_cast<void>(moves());
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_TRUE(moves().empty());
  touch(2, 1);
  static_cast<void>(moves());
  EXPECT_TRUE(manager->confirm_present(stream));
  EXPECT_EQ(moves(), (calls{fetched(0, 2)}));
  EXPECT_TRUE(manager->confirmed_present());
}

TEST_F(ResidencyPresenceLimits, WhereAllFitsUsesArePassedOverAgainAfterOthersMovedMemory)
{
  budget = blocks(32);  // all of the slab
  make();
  allocate(0, 8);
  for (int time = 0; time < 3; ++time) {
    EXPECT_TRUE(manager->all_present());
    put_in_doubt();
    static_cast<void>(moves());
    touch_often(15);
    EXPECT_FALSE(manager->all_present());
    touch_often(1);  // half as many uses as the slab has blocks
    EXPECT_EQ(moves(), (calls{fetched(0, 2), fetched(2, 6)}));
  }
  touch(0, 8);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().wanted_bytes, blocks(96));
}

TEST_F(ResidencyPresenceLimits, UsesAreNotPassedOverAgainOnceABlockOfOursLeft)
{
  budget = blocks(32);
  make();
  allocate(0, 8);
  EXPECT_EQ(manager->evict(at(4)), blocks(1));
  touch_often(40);
  EXPECT_FALSE(manager->all_present());
}

TEST_F(ResidencyPresenceLimits, ARequestBesideWhatIsInDoubtFindsRoom)
{
  fetch_bytes = 2 * va_block_bytes;
  make();
  reuse(at(0, 8));
  free(0, 8);
  reuse(at(8, 8));
  put_in_doubt();
  bool once       = false;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.name != "prefetch" || once) { return; }
    once = true;
    std::thread{[&] { reuse(at(20, 2)); }}.join();
  };
  static_cast<void>(manager->confirm_present(stream));
  driver->on_call = [](tests::driver_call const&) {};
  EXPECT_TRUE(once);
  EXPECT_EQ(manager->statistics().over_budget, 0U);
  EXPECT_LE(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(ResidencyPresenceLimits, AdviceEndsIt)
{
  driver->facts.concurrent_managed_access = {true, {}};
  make_with_six();
  adviser.advise(at(12, 2), {std::nullopt, preferred_place::host});
  EXPECT_EQ(manager->evict(at(12, 2)), blocks(2));
  EXPECT_TRUE(manager->confirm_present(stream));
  adviser.advise(at(12, 2), {std::nullopt, preferred_place::none});
  manager->on_advised(at(12, 2));
  EXPECT_FALSE(manager->confirmed_present());
}

TEST_F(ResidencyPresenceLimits, AMoveByANeighbourThatFailedEndsIt)
{
  multipath = true;
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  driver->answers["discard_and_prefetch"] = {status_code::out_of_memory, 2, "x"};
  driver->answers["prefetch"]             = {status_code::out_of_memory, 2, "x"};
  reuse(at(24, 1));
  driver->answers.clear();
  EXPECT_FALSE(manager->confirmed_present());
}

TEST_F(ResidencyPresenceLimits, WhatIsHandedOutInACaptureEndsIt)
{
  make_with_six();
  for (bool const anew : {false, true}) {
    EXPECT_TRUE(manager->confirm_present(stream));
    driver->capture = capture_state::capturing;
    if (anew) {
      allocate(24, 1);
    } else {
      reuse(at(24));
    }
    driver->capture = capture_state::none;
    EXPECT_FALSE(manager->confirmed_present());
    free(24, 1);
    manager->run_pending();  // it counts from then on, and is too much
  }
}

TEST_F(ResidencyPresenceLimits, ALookThatFindsOneMissingEndsIt)
{
  make_with_six();
  EXPECT_TRUE(manager->confirm_present(stream));
  reuse(at(24, 2), blocks(1));  // the second one does not come
  EXPECT_TRUE(manager->confirmed_present());
  EXPECT_FALSE(manager->confirm_present(stream));
  EXPECT_FALSE(manager->confirmed_present());
  auto const before = manager->statistics().wanted_bytes;
  touch(8, 6);
  EXPECT_EQ(manager->statistics().wanted_bytes, before + blocks(6));
}

TEST_F(ResidencyPresenceLimits, WhatIsReusedIsMarkedUnlessItIsConfirmed)
{
  make_with_six();
  reuse(at(20));
  for (bool const confirmed : {false, true}) {
    free(20, 1);
    EXPECT_EQ(confirmed && manager->confirm_present(stream), confirmed);
    static_cast<void>(driver->take_calls());
    reuse(at(20));
    EXPECT_EQ(driver->take_calls("mark").empty(), confirmed);
  }
}

}  // namespace
}  // namespace rmm_uvm
