// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is only read leaves without a copy, and what ends that.
#include "copies_fixture.hpp"
#include "residency_manager_fixture.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

class KeptCopies : public tests::CopiesOfTheHost {};

TEST_F(KeptCopies, WhatIsOnlyReadIsCopiedToTheHostOnce)
{
  make();
  go_round(3);
  EXPECT_EQ(left(), blocks(objects * object_blocks));  // each as it was written
  auto const before = manager->statistics();
  go_round(4);
  auto const after = manager->statistics();
  EXPECT_EQ(left(), blocks(objects * object_blocks));
  EXPECT_GT(after.evicted_bytes, before.evicted_bytes);
  EXPECT_EQ(after.evicted_bytes - before.evicted_bytes,
            after.uncopied_bytes - before.uncopied_bytes);
  EXPECT_EQ(after.kept_copy_bytes, after.resident_bytes);
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  EXPECT_EQ(after.failed_calls, 0U);
}

TEST_F(KeptCopies, LeaveBeforeWhatIsCopiedEachTime)
{
  make();
  auto const use_all = [this] {
    for (std::size_t number = 0; number < objects; ++number) {
      announce(object(number), number >= 1);  // one may be written
    }
  };
  use_all();
  use_all();
  auto const before = left();
  use_all();
  use_all();
  EXPECT_EQ(left(), before);
  EXPECT_FALSE(is_advised(object(0)));
  EXPECT_EQ(device->view().resident_bytes(object(0)), object(0).bytes);
}

TEST_F(KeptCopies, NothingIsKeptUnlessAsked)
{
  make(false);
  go_round(3);
  EXPECT_GT(left(), blocks(objects * object_blocks));
  EXPECT_EQ(manager->statistics().uncopied_bytes, 0U);
  EXPECT_EQ(advised_blocks(), 0U);
}

TEST_F(KeptCopies, NothingIsKeptWherePageTablesCannotBeRead)
{
  lose_page_tables();
  make();
  go_round(3);
  EXPECT_GT(left(), blocks(objects * object_blocks));
  EXPECT_EQ(manager->statistics().uncopied_bytes, 0U);
  EXPECT_EQ(advised_blocks(), 0U);
}

TEST_F(KeptCopies, OnlyWhatIsOnTheDeviceIsAdvised)
{
  make();
  go_round(3);
  EXPECT_EQ(blocks(advised_blocks()), manager->statistics().kept_copy_bytes);
  // What is away would else be read where it is.
  auto const came = device->counters().read().host_to_device_bytes;
  ASSERT_EQ(device->view().resident_bytes(object(0)), 0U);
  read(object(0), 0);
  EXPECT_EQ(device->counters().read().host_to_device_bytes, came + object(0).bytes);
}

TEST_F(KeptCopies, UseThatMayWriteEndsThemForGood)
{
  make();
  go_round(3);
  auto const last = object(objects - 1);
  ASSERT_TRUE(is_advised(last));
  announce(last, false);
  EXPECT_FALSE(is_advised(last));
  EXPECT_EQ(device->view().resident_bytes(last), last.bytes);
  write(last, objects - 1);
  auto const before = left();
  EXPECT_EQ(manager->evict(last), last.bytes);
  EXPECT_EQ(left(), before + last.bytes);  // copied
  go_round(2);
  EXPECT_FALSE(is_advised(last));  // its pointer may be anywhere
}

TEST_F(KeptCopies, PageThatIsWrittenUnannouncedIsCopiedWhenItsBlockLeaves)
{
  make();
  go_round(3);
  auto const last = object(objects - 1);
  ASSERT_TRUE(is_advised(last));
  memory_range const page{last.address + blocks(1), 65536};
  write(page, 77);
  auto const before = left();
  EXPECT_EQ(manager->evict(last), last.bytes);
  EXPECT_EQ(device->view().resident_bytes(last), 0U);
  EXPECT_GE(left(), before + page.bytes);
  EXPECT_LT(left(), before + last.bytes);
  announce(last);
  read(page, 77);
  read({page.end(), 65536}, objects - 1);
  // Who wrote it may do so again: of that block no copy is kept any more.
  EXPECT_FALSE(is_advised({page.address, 1}));
  EXPECT_TRUE(is_advised(last));
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
}

TEST_F(KeptCopies, EndBeforeTheirMemoryIsHandedOutAgain)
{
  make();
  go_round(3);
  auto const last = object(objects - 1);
  ASSERT_TRUE(is_advised(last));
  manager->on_free(last, nullptr);
  EXPECT_FALSE(is_advised(last));
  manager->on_allocate(last, nullptr);
  write(last, 88);
  auto const before = left();
  EXPECT_EQ(manager->evict(last), last.bytes);
  EXPECT_EQ(left(), before + last.bytes);
  announce(last);
  read(last, 88);
}

TEST_F(KeptCopies, AreOfBlocksOfOneAllocationOnly)
{
  make();
  auto const both = object(0);
  manager->on_free(both, nullptr);
  memory_range const first{both.address, blocks(1) + blocks(1) / 2};
  memory_range const second{first.end(), both.end() - first.end()};
  for (auto const& each : {first, second}) {
    manager->on_allocate(each, nullptr);
    write(each, 5);
  }
  static_cast<void>(manager->evict(both));
  for (int round = 0; round < 3; ++round) {
    for (auto const& each : {first, second, object(1), object(2), object(3), object(4)}) {
      announce(each);
    }
  }
  announce(first);
  announce(second);
  EXPECT_TRUE(is_advised(at(0)));
  EXPECT_FALSE(is_advised(at(1)));  // of both
  EXPECT_TRUE(is_advised(at(2)));
}

TEST_F(KeptCopies, AreNotOfWhatAUserAdvisedAbout)
{
  make();
  go_round(3);
  auto const last = object(objects - 1);
  ASSERT_TRUE(is_advised(last));
  ASSERT_EQ(adviser->advise(last, {std::nullopt, preferred_place::device}).advised_bytes,
            last.bytes);
  manager->on_advised(last);
  auto const told = device->view().advised(last.address);
  EXPECT_FALSE(told.read_mostly);
  EXPECT_EQ(told.preferred, 0);  // the device
  EXPECT_EQ(manager->evict(last), last.bytes);
  announce(last);
  EXPECT_FALSE(device->view().advised(last.address).read_mostly);
}

TEST_F(KeptCopies, EndWithTheBudget)
{
  make();
  go_round(3);
  ASSERT_GT(advised_blocks(), 0U);
  auto const there = device->view().resident_bytes(slab);
  manager->retire([] {});
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(device->view().resident_bytes(slab), there);
  for (std::size_t number = 0; number < objects; ++number) {
    read(object(number), number);
  }
}

TEST_F(KeptCopies, UseThatMayWriteCountsAlsoWhereUsesArePassedOver)
{
  make();
  for (std::size_t number = 4; number < objects; ++number) {
    manager->on_free(object(number), nullptr);  // the rest fits
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t number = 0; number < 4; ++number) {
      announce(object(number));
    }
  }
  ASSERT_TRUE(manager->confirm_present(nullptr));
  ASSERT_TRUE(is_advised(object(0)));
  announce(object(0), false);
  EXPECT_FALSE(is_advised(object(0)));
}

TEST_F(KeptCopies, SlabThatGoesTakesThemAlong)
{
  make();
  go_round(3);
  ASSERT_GT(manager->statistics().kept_copy_bytes, 0U);
  manager->on_slab_free(slab);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
}

/** @brief The same over a driver that records every call. */
class KeptCopiesOnTheirWay : public tests::ResidencyManager {
 protected:
  void SetUp() override
  {
    keep_copies              = true;
    driver->facts.host_pages = {};
    make();
    allocate(0, 4);
    manager->evict(at(0, 4));
    static_cast<void>(driver->take_calls());
  }
  void announce_to_read()
  {
    use_event const use{use_kind::touch, at(0, 4), at(0).address, 0, true};
    manager->on_touch({&use, 1}, stream);
  }
  [[nodiscard]] std::size_t advised(memory_advice what)
  {
    auto const made = driver->take_calls("advise");
    return static_cast<std::size_t>(std::count_if(
      made.begin(), made.end(), [what](auto const& call) { return call.advice == what; }));
  }
};

TEST_F(KeptCopiesOnTheirWay, AreEndedBeforeWhoFreesThemMeanwhileGoesOn)
{
  std::atomic<bool> freed{false};
  bool too_early = false;
  std::thread other;
  driver->on_call = [&](tests::driver_call const& call) {
    if (call.advice != memory_advice::read_mostly) { return; }
    other = std::thread{[&] {
      free(0, 4);
      freed = true;
    }};
    while (!freed && manager->statistics().waits == 0) {
      std::this_thread::yield();
    }
    too_early = freed;
  };
  announce_to_read();
  ASSERT_TRUE(other.joinable());
  other.join();
  EXPECT_FALSE(too_early);
  EXPECT_EQ(advised(memory_advice::unset_read_mostly), 1U);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
}

TEST_F(KeptCopiesOnTheirWay, AreToldOfOnceThereIsRoomForThem)
{
  allocate(4, budget_blocks);  // others have to leave first
  std::size_t left = 0;
  std::size_t most = 0;
  driver->on_call  = [&](tests::driver_call const& call) {
    if (call.advice || call.device_id != location::host_id) { return; }
    ++left;
    most = std::max(most, manager->statistics().kept_copy_bytes);
  };
  announce_to_read();
  EXPECT_GT(left, 0U);
  EXPECT_EQ(most, 0U);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, blocks(4));
}

TEST_F(KeptCopiesOnTheirWay, AreNoneWhereTheDriverRefusesTheAdvice)
{
  driver->answers["advise"] = {status_code::invalid_value, 1, "advise"};
  announce_to_read();
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(4));
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  manager->evict(at(0, 4));
  static_cast<void>(driver->take_calls());
  announce_to_read();  // it is not asked again
  EXPECT_TRUE(driver->take_calls("advise").empty());
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(4));
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
}

TEST_F(KeptCopiesOnTheirWay, ThatTheDriverRefusesLeaveWhatANeighborHadOnTheDevice)
{
  neighbors     = {{1, blocks(8)}};
  fetches_ahead = false;
  SetUp();
  ASSERT_GT(manager->statistics().harvested_bytes, 0U);
  driver->answers["advise"] = {status_code::invalid_value, 1, "advise"};
  announce_to_read();
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(4));
  EXPECT_EQ(manager->statistics().harvested_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm
