// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Parts of a slab that a caching allocator hands out anew: which calls reach the driver.
#include "residency_manager_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::blocks;
using tests::ResidencyManager;

class ResidencyReuse : public ResidencyManager {
 protected:
  /** @brief Blocks 0 to 7 were handed out, freed and dropped; 8 to 15 are on the device. */
  void make_with_dropped()
  {
    make();
    reuse(at(0, 8));
    free(0, 8);
    reuse(at(8, 8));
    EXPECT_EQ(manager->statistics().dropped_bytes, blocks(8));
    driver->orders.clear();
    static_cast<void>(driver->take_calls());
  }
  [[nodiscard]] static memory_range half(std::size_t block, bool second)
  {
    return {at(block).address + (second ? va_block_bytes / 2 : 0), va_block_bytes / 2};
  }
};

TEST_F(ResidencyReuse, DeadPartIsDroppedAndRenewedNeverCopied)
{
  make();
  reuse(at(0, 8));
  free(0, 8);
  static_cast<void>(moves());
  reuse(at(8, 8));
  EXPECT_EQ(moves(), (calls{dropped(0, 8), renewed(8, 8)}));
  free(8, 8);
  reuse(at(0, 8));
  EXPECT_EQ(moves(), (calls{dropped(8, 8), renewed(0, 8)}));
  EXPECT_EQ(manager->statistics().evicted_bytes, 0U);
}

TEST_F(ResidencyReuse, LivePartIsCopiedAndComesBackWithItsContents)
{
  make();
  reuse(at(0, 8));
  static_cast<void>(moves());
  reuse(at(8, 2));
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
  touch(0, 2);
  EXPECT_EQ(moves(), (calls{to_host(2, 2), fetched(0, 2)}));
  EXPECT_EQ(manager->statistics().dropped_bytes, 0U);
}

TEST_F(ResidencyReuse, DroppedPartIsRenewedWithoutAnotherDiscard)
{
  make_with_dropped();
  reuse(at(0, 2));
  EXPECT_EQ(moves(), (calls{to_host(8, 2), renewed(0, 2)}));
  EXPECT_TRUE(driver->orders.empty());
}

TEST_F(ResidencyReuse, RestBeyondWhatIsLikelyIsNotBroughtAndNotTakenForDiscarded)
{
  make_with_dropped();
  reuse(at(0, 8), blocks(2));
  EXPECT_EQ(moves(), (calls{to_host(8, 2), renewed(0, 2)}));  // no more than what is brought needs
  EXPECT_EQ(manager->statistics().renewed_bytes, blocks(8 + 8 + 2));
  ledger_view view{ledger};
  view.each(at(0, 8), [&](block_record const& block, memory_range) {
    EXPECT_FALSE(block.busy || block.discarded);
  });
}

TEST_F(ResidencyReuse, BlockBetweenWhatIsLikelyAndTheRestComesWithItsContents)
{
  make_with_dropped();
  reuse({at(0).address, blocks(3)}, blocks(1) + 512);
  auto const found = moves();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], to_host(8, 2));
  EXPECT_EQ(found[1], renewed(0, 1));
  EXPECT_EQ(found[2], fetched(1, 1));  // its end may be used too
}

TEST_F(ResidencyReuse, CapturedStreamIsGivenNothingAndItsMemoryIsNotTakenForDiscarded)
{
  make_with_dropped();
  driver->capture = capture_state::capturing;
  reuse(at(0, 2));
  EXPECT_TRUE(moves().empty());
  ledger_view view{ledger};
  view.each(at(0, 2),
            [&](block_record const& block, memory_range) { EXPECT_FALSE(block.discarded); });
}

TEST_F(ResidencyReuse, PartOfABlockWhoseNeighbourLivesIsNeverRenewed)
{
  make();
  reuse(half(0, false));
  reuse(at(8, 8));
  static_cast<void>(moves());
  reuse(half(0, true));
  EXPECT_EQ(moves(), (calls{to_host(8, 1), fetched(0, 1)}));
}

TEST_F(ResidencyReuse, BlockIsDroppedOnlyOnceBothItsPartsAreFreed)
{
  for (bool const both : {false, true}) {
    make();
    reuse(half(0, false));
    reuse(half(0, true));
    manager->on_free(half(0, true), stream);
    if (both) { manager->on_free(half(0, false), stream); }
    static_cast<void>(moves());
    reuse(at(8, 8));
    EXPECT_EQ(moves().front(), both ? dropped(0, 1) : to_host(0, 1));
    manager.reset();
    ledger.remove_slab(slab.address);
  }
}

TEST_F(ResidencyReuse, WhatWasTakenToBeLiveIsNotCountedTwice)
{
  make();
  reuse(at(0, 4));
  manager->on_reuse({at(2, 2), {at(2).address, 0}, 0}, stream);  // its second half, another's now
  free(0, 2);
  free(2, 2);
  static_cast<void>(moves());
  reuse(at(8, 8));
  EXPECT_EQ(moves(), (calls{dropped(0, 4), renewed(8, 8)}));
}

TEST_F(ResidencyReuse, FreeThatStreamsDoNotOrderIsNeverDropped)
{
  make();
  reuse(at(0, 8));
  driver->orders.clear();
  manager->on_free(at(0, 8), stream, false);
  EXPECT_TRUE(driver->orders.empty());
  static_cast<void>(moves());
  reuse(at(8, 2));
  EXPECT_EQ(moves(), (calls{to_host(0, 2), renewed(8, 2)}));
  EXPECT_EQ(manager->statistics().unfenced_frees, 1U);
  EXPECT_EQ(manager->statistics().dropped_bytes, 0U);
}

TEST_F(ResidencyReuse, FreeThatStreamsOrderIsFencedAndDropped)
{
  make();
  reuse(at(0, 8));
  manager->on_free(at(0, 8), stream, true);
  static_cast<void>(moves());
  reuse(at(8, 2));
  EXPECT_EQ(moves(), (calls{dropped(0, 2), renewed(8, 2)}));
  EXPECT_EQ(manager->statistics().unfenced_frees, 0U);
}

TEST_F(ResidencyReuse, EmptyExtentIsNothing)
{
  make();
  static_cast<void>(driver->take_calls());
  reuse({slab.address, 0});
  EXPECT_TRUE(driver->take_calls().empty());
}

}  // namespace
}  // namespace rmm_uvm
