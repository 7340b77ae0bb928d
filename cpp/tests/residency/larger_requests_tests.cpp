// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Requests larger than the budget: what comes, what is read on the host, and what that moves.
#include "../support/blocks.hpp"

#include <rmm_uvm/residency/larger_requests.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using ranges = std::vector<memory_range>;

TEST(LargerRequests, HalfOfTheBudgetComesInTheOrderOfTheRequest)
{
  ranges const wanted{block_range(0, 10, 3), block_range(0, 0, 4)};
  auto const parts = divide(wanted, blocks(8), 0);
  EXPECT_EQ(parts.coming, (ranges{block_range(0, 10, 3), block_range(0, 0, 1)}));
  EXPECT_EQ(parts.in_place, (ranges{block_range(0, 1, 3)}));
}

TEST(LargerRequests, WhatIsThereTakesRoom)
{
  ranges const wanted{block_range(0, 0, 9)};
  EXPECT_EQ(divide(wanted, blocks(8), blocks(3)).coming, (ranges{block_range(0, 0, 1)}));
  EXPECT_TRUE(divide(wanted, blocks(8), blocks(7)).coming.empty());
}

TEST(LargerRequests, BudgetOfLessThanTwoBlocksHasNothingCome)
{
  ranges const wanted{block_range(0, 0, 4)};
  auto const parts = divide(wanted, blocks(2) - 1, 0);
  EXPECT_TRUE(parts.coming.empty());
  EXPECT_EQ(parts.in_place, wanted);
}

TEST(LargerRequests, AreDividedBetweenBlocksAndNothingIsLostOrNamedTwice)
{
  std::mt19937 random{20261127};
  for (int program = 0; program < 500; ++program) {
    ranges wanted;
    std::uintptr_t next = blocks(100);
    for (int number = 0; number < 6; ++number) {
      next += random() % blocks(3);
      memory_range const range{next, 1 + random() % blocks(5)};
      wanted.push_back(range);
      next = range.end();
    }
    auto const budget_bytes  = 1 + random() % blocks(12);
    auto const parts         = divide(wanted, budget_bytes, 0);
    std::size_t coming_bytes = 0;
    for (auto const& each : parts.coming) {
      coming_bytes += bytes_of_blocks(each);
    }
    EXPECT_LE(coming_bytes, budget_bytes / 2);
    ranges both{parts.coming};
    both.insert(both.end(), parts.in_place.begin(), parts.in_place.end());
    auto const by_address = [](auto const& a, auto const& b) { return a.address < b.address; };
    std::sort(both.begin(), both.end(), by_address);
    ranges joined;
    for (auto const& each : both) {
      bool const cut = !joined.empty() && joined.back().end() == each.address &&
                       each.address % va_block_bytes == 0 &&
                       std::none_of(wanted.begin(), wanted.end(), [&](auto const& one) {
                         return one.address == each.address;
                       });
      if (cut) {
        joined.back().bytes += each.bytes;
      } else {
        joined.push_back(each);
      }
    }
    EXPECT_EQ(joined, wanted);
  }
}

class HostMappings : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 16;
  static constexpr std::size_t slab_blocks   = 96;

  void SetUp() override
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(2 * slab_blocks);  // a GPU that is larger than the budget
    device                = std::make_shared<sim::simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = eviction_policy::lru;
    settings.background = false;
    manager             = std::make_unique<residency_manager>(device, ledger, settings);
    for (std::size_t first = 0; first < 48; first += 4) {  // 0 to 31 leave
      manager->on_allocate(at(first, 4), nullptr);
      kernel(at(first, 4), true);
    }
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count = 1) const
  {
    return block_range(slab.address, first, count);
  }
  void kernel(memory_range range, bool writes)
  {
    ASSERT_TRUE(device->program().touch(range, writes).ok());
  }
  void announce(memory_range range, bool only_read = true)
  {
    use_event const use{use_kind::touch, range, range.address, 0, only_read};
    manager->on_touch({&use, 1}, nullptr);
  }
  [[nodiscard]] std::size_t there(memory_range range) const
  {
    return device->view().resident_bytes(range);
  }
  [[nodiscard]] std::uint64_t came() const
  {
    return device->counters().read().host_to_device_bytes;
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks)};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

TEST_F(HostMappings, RestOfARequestThatIsOnlyReadIsReadOnTheHost)
{
  announce(at(0, 24));
  EXPECT_EQ(there(at(0, 8)), blocks(8));
  EXPECT_EQ(there(at(8, 16)), 0U);
  auto const before = came();
  kernel(at(0, 24), false);
  EXPECT_EQ(came(), before);  // no page fault
  EXPECT_LE(there(slab), blocks(budget_blocks));
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.host_read_bytes, blocks(16));
  EXPECT_EQ(counts.too_large, 1U);
  EXPECT_EQ(counts.too_large_bytes, blocks(24));
}

TEST_F(HostMappings, BlocksThatRangesShareCountOnce)
{
  std::vector<use_event> uses;
  for (std::size_t number = 0; number < 4 * budget_blocks; ++number) {
    memory_range const part{at(0).address + number * blocks(1) / 8, 4096};
    uses.push_back({use_kind::touch, part, part.address, 0, true});
  }
  manager->on_touch(uses, nullptr);
  EXPECT_EQ(there(at(0, 8)), blocks(8));
  EXPECT_EQ(manager->statistics().too_large, 0U);
  EXPECT_EQ(manager->statistics().host_read_bytes, 0U);
}

TEST_F(HostMappings, RequestThatMayWriteIsNotMapped)
{
  announce(at(0, 24), false);
  auto const before = came();
  kernel(at(0, 24), true);
  EXPECT_EQ(came(), before + blocks(24));
  EXPECT_EQ(manager->statistics().host_read_bytes, 0U);
}

TEST_F(HostMappings, WhatIsThereStaysAndIsReadThere)
{
  announce(at(20, 28));  // 32 to 47 are there
  auto const before = came();
  kernel(at(20, 28), false);
  EXPECT_EQ(came(), before);
  EXPECT_EQ(manager->statistics().host_read_bytes, blocks(12));
  EXPECT_LE(there(slab), blocks(budget_blocks));
}

TEST_F(HostMappings, EndOnceTheWorkIsDone)
{
  announce(at(0, 24));
  kernel(at(0, 24), false);
  announce(at(40, 1));
  announce(at(41, 1));  // the mark of the one before, behind the work, is passed
  auto const before = came();
  kernel(at(20, 1), false);
  EXPECT_EQ(came(), before + blocks(1));  // by a fault
}

TEST_F(HostMappings, StayWhileTheSameIsAnnouncedAgain)
{
  for (int round = 0; round < 3; ++round) {
    announce(at(0, 24));
    auto const before = came();
    kernel(at(0, 24), false);
    EXPECT_EQ(came(), before);
  }
  EXPECT_EQ(manager->statistics().host_read_bytes, 3 * blocks(16));
}

TEST_F(HostMappings, BlockThatARequestBringsIsNotMappedAnyMore)
{
  announce(at(0, 24));
  announce(at(20, 2));
  EXPECT_EQ(there(at(20, 2)), blocks(2));
  EXPECT_EQ(manager->evict(at(20, 2)), blocks(2));
  auto const before = came();
  kernel(at(20, 2), false);
  EXPECT_EQ(came(), before + blocks(2));
}

TEST_F(HostMappings, EndWithTheBudget)
{
  announce(at(0, 24));
  manager->retire([] {});
  auto const before = came();
  kernel(at(20, 1), false);
  EXPECT_EQ(came(), before + blocks(1));
}

TEST_F(HostMappings, AdviceOfAUserIsLeftAlone)
{
  memory_adviser adviser{device, ledger};
  ASSERT_EQ(adviser.advise(at(10, 2), {true, std::nullopt}).advised_bytes, blocks(2));
  announce(at(0, 24));
  EXPECT_EQ(manager->statistics().host_read_bytes, blocks(14));
}

TEST_F(HostMappings, AllocationLargerThanTheBudgetCountsFromTheBeginning)
{
  memory_range const large = at(48, 24);
  manager->on_allocate(large, nullptr);
  EXPECT_EQ(there(slab), blocks(budget_blocks));
  EXPECT_EQ(there(at(48, budget_blocks)), blocks(budget_blocks));
  kernel(large, true);
  manager->run_pending();
  EXPECT_LE(there(slab), blocks(budget_blocks));
  EXPECT_EQ(there(slab), manager->statistics().resident_bytes);
}

}  // namespace
}  // namespace rmm_uvm
