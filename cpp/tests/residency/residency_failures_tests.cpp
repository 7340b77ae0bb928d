// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What others move, and what fails.
#include "residency_manager_fixture.hpp"

#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::driver_call;
using tests::ResidencyManager;

TEST_F(ResidencyManager, BytesThatLeftUnaskedPutWhatIsThereInDoubt)
{
  make();
  allocate(0, 4);
  static_cast<void>(moves());
  driver->counted.device_to_host_bytes += 4096;
  touch(0, 4);
  EXPECT_EQ(moves(), (calls{fetched(0, 4)}));
  touch(0, 4);
  EXPECT_TRUE(moves().empty());
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(4));
}

TEST_F(ResidencyManager, BytesThatItMovedItselfPutNothingInDoubt)
{
  make();
  driver->on_call = [this](driver_call const& call) {
    if (call.device_id == location::host_id && call.name == "prefetch") {
      driver->counted.device_to_host_bytes += call.ranges[0].bytes;
    }
  };
  allocate(0, 4);
  allocate(4, 4);
  allocate(8, 4);
  static_cast<void>(moves());
  touch(4, 4);
  EXPECT_TRUE(moves().empty());
}

TEST_F(ResidencyManager, EvictionThatFailsLeavesTheBlockWhereItIs)
{
  make();
  allocate(0, 8);
  driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
  allocate(8, 2);
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.failed_calls, 1U);
  EXPECT_EQ(counts.last_failure.native_error, 2);
  EXPECT_EQ(counts.resident_bytes, blocks(10));
  driver->answers.clear();
  static_cast<void>(moves());
  allocate(10, 1);
  EXPECT_EQ(moves(), (calls{to_host(0, 2), to_host(2, 1), renewed(10, 1)}));
}

TEST_F(ResidencyManager, EvictionThatFailsHalfwayPutsWhatIsThereInDoubt)
{
  make();
  allocate(0, 8);
  driver->on_call = [this](driver_call const& call) {
    if (call.name == "prefetch" && call.device_id == location::host_id) {
      driver->counted.device_to_host_bytes += call.ranges[0].bytes;
      driver->answers["prefetch"] = {status_code::out_of_memory, 2, "cuMemPrefetchAsync"};
    }
  };
  EXPECT_EQ(manager->evict(at(0, 4)), 0U);
  driver->on_call = [](driver_call const&) {};
  driver->answers.clear();
  static_cast<void>(moves());
  touch(0, 4);
  EXPECT_EQ(moves(), (calls{fetched(0, 4)}));
}

TEST_F(ResidencyManager, DiscardThatFailsIsNotTakenForRoom)
{
  make();
  allocate(0, 8);
  free(0, 8);
  driver->answers["discard"] = {status_code::driver_error, 1, "cuMemDiscardBatchAsync"};
  allocate(8, 2);
  driver->answers.clear();
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(10));
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
}

TEST_F(ResidencyManager, DiscardOfARequestThatFailsIsCountedAndItsBlocksCome)
{
  make();
  allocate(0, 4);
  free(0, 4);
  EXPECT_EQ(manager->evict(at(0, 4)), blocks(4));
  driver->answers["discard_and_prefetch"] = {status_code::driver_error, 1, "cuMemDiscard"};
  static_cast<void>(moves());
  allocate(0, 2);
  EXPECT_EQ(moves(), (calls{renewed(0, 2), fetched(0, 2)}));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.failed_calls, 1U);
  EXPECT_EQ(counts.fetched_bytes, blocks(2));  // perhaps copied
  EXPECT_EQ(counts.renewed_bytes, blocks(4));
}

TEST_F(ResidencyManager, AdviceAboutOneBlockDoesNotMakeOthersLeaveByLibcuda)
{
  driver->facts.direct_migration = availability::yes();
  make();
  allocate(0, 8);
  adviser.advise(at(7), {true, std::nullopt});
  static_cast<void>(moves());
  EXPECT_EQ(manager->evict(at(0, 1)), blocks(1));
  EXPECT_EQ(moves(), (calls{migrated_to_host(0, 1)}));
}

TEST_F(ResidencyManager, FreedSlabIsForgottenWithItsResidence)
{
  make();
  allocate(0, 4);
  manager->pin(at(0, 1));
  manager->on_slab_free(slab);
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.resident_bytes, 0U);
  EXPECT_EQ(counts.pinned_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm
