// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What torch may still use is not taken to be dead: by other streams, once nothing is told any
// more, and where there is no memory to note it.
#include "../support/failing_new.hpp"
#include "torch_segments_fixture.hpp"

#include <algorithm>
#include <cstdint>

namespace rmm_uvm::mr {
namespace {

using tests::address_of;
using tests::blocks;
using tests::simulated_chain;
using tests::TorchSegments;

/** @brief A part is told to be free and handed out with what lies before it, not all of it. */
TEST_F(TorchSegments, WhatAnotherStreamMayStillReadKeepsItsContentsWhenTheExtentBeforeItIsHandedOut)
{
  for (bool const several : {false, true}) {
    simulated_chain with_contents{true};
    with_contents.residency->start_budget(settings);
    auto const those = make(with_contents);
    auto const start = address_of(those->allocate(blocks(12), nullptr));
    EXPECT_NE(those->allocate(blocks(12), nullptr), nullptr);  // past the budget
    those->follow({});
    if (several) { those->several_streams(); }
    memory_range const read{start + blocks(2), blocks(4)};
    those->on_allocate(start);
    those->on_allocate(read.address);
    EXPECT_TRUE(with_contents.device->program().touch(read, true).ok());
    auto* const bytes = reinterpret_cast<unsigned char*>(read.address);
    std::fill_n(bytes, read.bytes, std::uint8_t{0x5A});
    those->on_free(start);
    those->on_free(read.address);  // torch tells before it takes it back
    EXPECT_EQ(with_contents.residency->evict(read, nullptr), read.bytes);
    those->on_allocate(start);
    bool const kept = std::all_of(bytes, bytes + read.bytes, [](auto one) { return one == 0x5A; });
    EXPECT_EQ(kept, several);
  }
}

TEST_F(TorchSegments, WhatIsFreeWhenFollowingEndsIsNeverDroppedWhileTorchGoesOnToAllocate)
{
  for (bool const routed : {false, true}) {
    simulated_chain fresh;
    fresh.residency->start_budget(settings);
    auto const those  = make(fresh);
    auto const start  = address_of(those->allocate(blocks(8), nullptr));
    auto const second = address_of(those->allocate(blocks(10), nullptr));
    those->follow({{start, blocks(4)}, {second, blocks(10)}});
    those->unfollow(routed);
    memory_range const used{start + blocks(4), blocks(4)};  // torch hands it out: nobody tells
    EXPECT_TRUE(fresh.device->program().touch(used, true).ok());
    fresh.residency->bring(used, nullptr);
    EXPECT_NE(those->allocate(blocks(10), nullptr), nullptr);
    auto const dropped = fresh.residency->budget_statistics().value().dropped_bytes;
    EXPECT_EQ(dropped, routed ? 0U : blocks(4));
    those->follow({{start, blocks(8)}, {second, blocks(10)}});
    those->on_free(start);  // and what was unknown is known by a list again
    EXPECT_EQ(those->statistics().freed, 1U);
  }
}

TEST_F(TorchSegments, OwnMemoryMayFailWhereAnAllocationBeginsInALivePartAndNeitherLosesAnything)
{
  auto const failures = tests::failures_of([&](std::size_t nth) {
    simulated_chain fresh{true};
    fresh.residency->start_budget(settings);
    auto const those = make(fresh);
    those->follow({});
    auto const start = address_of(those->allocate(blocks(8), nullptr));
    EXPECT_NE(those->allocate(blocks(12), nullptr), nullptr);
    those->on_allocate(start);  // all of it as far as is known; the program has the first half
    memory_range const first{start, blocks(4)};
    EXPECT_TRUE(fresh.device->program().touch(first, true).ok());
    auto* const bytes = reinterpret_cast<unsigned char*>(start);
    std::fill_n(bytes, first.bytes, std::uint8_t{0x5A});
    EXPECT_EQ(fresh.residency->evict(first, nullptr), first.bytes);
    bool over = false;
    {
      tests::failing_new const failing{nth};
      those->on_allocate(start + blocks(4));
      over = !tests::failing_new::has_failed();
    }
    those->on_free(start + blocks(4));  // another's end is not its
    EXPECT_NE(those->allocate(blocks(12), nullptr), nullptr);
    EXPECT_TRUE(std::all_of(bytes, bytes + first.bytes, [](auto one) { return one == 0x5A; }))
      << nth;
    return over;
  });
  EXPECT_GT(failures, 0U);
}

TEST_F(TorchSegments, OwnMemoryMayFailWhereverAnAllocationIsToldAndItIsNeverDropped)
{
  auto const failures = tests::failures_of([&](std::size_t nth) {
    simulated_chain fresh;
    fresh.residency->start_budget(settings);
    auto const those = make(fresh);
    those->follow({});
    auto const start = address_of(those->allocate(blocks(4), nullptr));
    auto const large = address_of(those->allocate(blocks(budget_blocks), nullptr));
    bool over        = false;
    {
      tests::failing_new const failing{nth};
      those->on_allocate(start + blocks(2));
      over = !tests::failing_new::has_failed();
    }
    auto const used = memory_range{start + blocks(2), blocks(2)};
    static_cast<void>(fresh.device->program().touch(used, true));
    fresh.residency->bring(used, nullptr);
    those->on_allocate(large);  // as much as the budget: all else leaves
    EXPECT_EQ(fresh.residency->budget_statistics().value().dropped_bytes, 0U) << nth;
    EXPECT_GE(fresh.residency->budget_statistics().value().evicted_bytes, blocks(2)) << nth;
    return over;
  });
  EXPECT_GT(failures, 4U);
}

}  // namespace
}  // namespace rmm_uvm::mr
