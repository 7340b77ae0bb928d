// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A budget that acts like a smaller card: first in, first out, and pages come by faults.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::recording_driver;
using tests::slab_address;
using block_numbers = std::vector<std::size_t>;

class FaultDriven : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 8;

  void make(eviction_policy policy = eviction_policy::fifo, bool fetch = false)
  {
    auto settings         = residency_settings::of(blocks(budget_blocks));
    settings.policy       = policy;
    settings.background   = false;
    settings.piece_bytes  = blocks(1);
    settings.fetch        = fetch;
    settings.discard_dead = false;
    ledger.add_slab(slab);
    manager = std::make_unique<residency_manager>(driver, ledger, settings);
  }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count)
  {
    return block_range(slab_address, first, count);
  }
  void allocate(std::size_t first, std::size_t count)
  {
    manager->on_allocate(at(first, count), stream);
  }
  void touch(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), stream);
  }
  /** @brief A full card whose oldest blocks are 2 and 3, behind 0 and 1 on the host. */
  void fill()
  {
    allocate(0, 8);
    allocate(8, 2);
    ASSERT_EQ(left(), (block_numbers{0, 1}));
  }
  /** @brief Blocks that were told to leave since the last call, in that order. */
  [[nodiscard]] block_numbers left()
  {
    block_numbers found;
    for (auto const& call : driver->take_calls("prefetch")) {
      if (call.device_id != location::host_id) { continue; }
      for (auto const& range : call.ranges) {
        for (auto address = range.address; address < range.end(); address += va_block_bytes) {
          found.push_back((address - slab_address) / va_block_bytes);
        }
      }
    }
    return found;
  }

  memory_range const slab{slab_address, blocks(32)};
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

TEST_F(FaultDriven, WhatARequestUsesLaterLeavesForWhatItUsesFirst)
{
  make();
  fill();
  touch(0, 4);
  // 2 and 3 are the oldest, and then have to come back in their turn.
  EXPECT_EQ(left(), (block_numbers{2, 3, 4, 5}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(FaultDriven, WhatARequestUsesStaysWherePagesAreFetched)
{
  make(eviction_policy::fifo, true);
  fill();
  touch(0, 4);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
}

TEST_F(FaultDriven, WhatARequestUsesStaysUnderAnotherPolicy)
{
  make(eviction_policy::lru);
  fill();
  touch(0, 4);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
}

TEST_F(FaultDriven, WhatARequestPassedStaysThoughItIsTheOldest)
{
  make();
  fill();
  std::vector<use_event> const uses{{use_kind::touch, at(2, 2), at(2, 2).address},
                                    {use_kind::touch, at(0, 2), at(0, 2).address}};
  manager->on_touch(uses, stream);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
  touch(10, 1);  // held no longer
  EXPECT_EQ(left(), (block_numbers{2}));
}

TEST_F(FaultDriven, WhatIsPrefetchedAgainLeavesLast)
{
  make();
  fill();
  manager->renew_arrival(at(2, 2), stream);
  touch(10, 2);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
}

TEST_F(FaultDriven, RoomIsMadeForWhatIsPrefetched)
{
  make();
  fill();
  manager->renew_arrival(at(0, 4), stream);
  // As the kernel driver passes them: 2 and 3 leave for 0 and 1, and come back in their turn.
  EXPECT_EQ(left(), (block_numbers{2, 3, 4, 5}));
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(FaultDriven, WhatTheLastKernelUsedLeavesForWhatIsPrefetchedBehindIt)
{
  make();
  fill();
  touch(2, 2);
  manager->renew_arrival(at(0, 2), stream);
  EXPECT_EQ(left(), (block_numbers{2, 3}));
}

TEST_F(FaultDriven, WhatAKernelUnderWayUsesStaysForWhatIsPrefetched)
{
  make();
  fill();
  driver->marks_passed = false;
  touch(2, 2);
  manager->renew_arrival(at(0, 2), stream);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
}

TEST_F(FaultDriven, NothingIsAskedOfAStreamThatIsCaptured)
{
  make();
  fill();
  static_cast<void>(driver->take_calls());
  auto const marks = driver->marks.size();
  driver->capture  = capture_state::capturing;
  manager->renew_arrival(at(0, 2), stream);
  EXPECT_TRUE(left().empty());
  EXPECT_EQ(driver->marks.size(), marks);
}

TEST_F(FaultDriven, NothingIsRankedAnewWherePagesAreFetched)
{
  make(eviction_policy::fifo, true);
  fill();
  manager->renew_arrival(at(2, 2), stream);
  touch(10, 2);
  EXPECT_EQ(left(), (block_numbers{2, 3}));
}

TEST_F(FaultDriven, WhatKernelsUnderWayUseIsWaitedForBeforeItLeaves)
{
  make();
  driver->marks_passed = false;
  fill();
  touch(0, 4);
  EXPECT_GE(driver->take_calls("synchronize").size(), 1U);
  EXPECT_EQ(manager->statistics().resident_bytes, blocks(8));
}

TEST_F(FaultDriven, WhatARequestFindsStaysWhileEarlierKernelsUseIt)
{
  make();
  fill();
  driver->marks_passed = false;
  touch(2, 2);
  static_cast<void>(driver->take_calls());
  touch(0, 4);
  EXPECT_EQ(left(), (block_numbers{4, 5}));
}

TEST_F(FaultDriven, WhatKernelsAreThroughWithLeavesWithoutAWait)
{
  make();
  fill();
  static_cast<void>(driver->take_calls());
  touch(0, 4);
  EXPECT_TRUE(driver->take_calls("synchronize").empty());
}

TEST_F(FaultDriven, RequestOfUnevenBytesComesBlockByBlock)
{
  make();
  fill();
  auto range = at(0, 2);
  range.address += tests::page_of_pool;
  range.bytes -= 2 * tests::page_of_pool;
  tests::touch(*manager, range, stream);
  EXPECT_EQ(left(), (block_numbers{2, 3}));
}

TEST_F(FaultDriven, LedgerCountsWhatIsLiveThoughItIsNotedLate)
{
  make();
  allocate(0, 2);
  driver->capture = capture_state::capturing;
  allocate(2, 2);
  ledger_view view{ledger};
  std::size_t live_bytes = 0;
  view.each([&](block_record const& block, memory_range) { live_bytes += block.live_bytes; });
  EXPECT_EQ(live_bytes, blocks(4));
}

}  // namespace
}  // namespace rmm_uvm
