// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the manager moves past libcuda, and what must stay in the order of streams.
#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;
using tests::recording_driver;
using tests::slab_address;

class DirectMoves : public testing::Test {
 protected:
  void make(bool available, bool direct = true)
  {
    driver->facts.direct_migration =
      available ? availability::yes() : availability::no("not in this test");
    auto settings       = residency_settings::of(blocks(16));
    settings.policy     = eviction_policy::lru;
    settings.background = false;
    settings.direct     = direct;
    ledger.add_slab({slab_address, blocks(64)});
    manager = std::make_unique<residency_manager>(driver, ledger, settings);
  }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count)
  {
    return block_range(slab_address, first, count);
  }
  /** @brief Fills the budget with one allocation, and has it leave for another one. */
  void exchange()
  {
    manager->on_allocate(at(0, 16), nullptr);
    manager->on_allocate(at(16, 16), nullptr);
  }
  [[nodiscard]] std::vector<std::size_t> lengths(std::string const& call)
  {
    std::vector<std::size_t> found;
    for (auto const& each : driver->take_calls(call)) {
      found.push_back(each.ranges.front().bytes / va_block_bytes);
    }
    return found;
  }

  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

TEST_F(DirectMoves, EvictAndFetchWithoutLibcudaInLongerPieces)
{
  make(true);
  exchange();
  EXPECT_EQ(manager->settings().piece_bytes, blocks(4));
  auto const calls = driver->take_calls("migrate");
  ASSERT_EQ(calls.size(), 4U);  // by several threads: in any order
  std::set<std::uintptr_t> left;
  for (auto const& call : calls) {
    EXPECT_EQ(call.device_id, location::host_id);
    EXPECT_EQ(call.ranges[0].bytes, blocks(4));
    left.insert(call.ranges[0].address);
  }
  EXPECT_EQ(left.size(), 4U);
  EXPECT_EQ(*left.begin(), slab_address);
  tests::touch(*manager, at(0, 16), nullptr);
  auto const moved = driver->take_calls("migrate");
  ASSERT_EQ(moved.size(), 6U);  // four pieces leave, then two longer ones come
  std::set<std::uintptr_t> came;
  for (std::size_t number = 4; number < 6; ++number) {
    EXPECT_EQ(moved[number].ranges[0].bytes, blocks(8));
    EXPECT_EQ(moved[number].device_id, 0);
    came.insert(moved[number].ranges[0].address);
  }
  EXPECT_EQ(came, (std::set{slab_address, at(8, 1).address}));
  EXPECT_EQ(manager->statistics().fetched_bytes, blocks(16));
}

TEST_F(DirectMoves, AreSharedOutWhereTheyAreLessThanAPieceForEachThread)
{
  make(true);
  manager->on_allocate(at(0, 16), nullptr);
  manager->on_allocate(at(16, 4), nullptr);
  auto const calls = driver->take_calls("migrate");
  ASSERT_EQ(calls.size(), 4U);
  for (auto const& call : calls) {
    EXPECT_EQ(call.ranges[0].bytes, blocks(1));
  }
}

TEST_F(DirectMoves, GoInOrderByOneThreadWhereTheDriverPlaysThreadsOut)
{
  driver->plays_threads_out = true;
  make(true);
  exchange();
  std::vector<std::uintptr_t> left;
  for (auto const& call : driver->take_calls("migrate")) {
    left.push_back(call.ranges[0].address);
  }
  EXPECT_EQ(left,
            (std::vector{slab_address, at(4, 1).address, at(8, 1).address, at(12, 1).address}));
  EXPECT_EQ(driver->shared_out, (std::vector<std::size_t>{4}));
  tests::touch(*manager, at(0, 16), nullptr);
  EXPECT_EQ(driver->shared_out, (std::vector<std::size_t>{4, 4, 2}));  // some leave, two fetch
  EXPECT_EQ(driver->sharing_out, 0);
}

TEST_F(DirectMoves, ThatFailEndWhatTheDriverPlaysOut)
{
  driver->plays_threads_out = true;
  make(true);
  driver->answers["migrate"]  = {status_code::driver_error, 31, "UVM_MIGRATE"};
  driver->answers["prefetch"] = {status_code::driver_error, 1, "cuMemPrefetchAsync"};
  exchange();
  EXPECT_FALSE(driver->shared_out.empty());
  EXPECT_EQ(driver->sharing_out, 0);
}

TEST_F(DirectMoves, ThatAreNotThereGoByLibcudaInShortPieces)
{
  make(false);
  exchange();
  tests::touch(*manager, at(0, 16), nullptr);
  EXPECT_EQ(driver->take_calls("migrate").size(), 0U);
  EXPECT_EQ(manager->settings().piece_bytes, blocks(2));
  EXPECT_EQ(manager->settings().fetch_bytes, blocks(2));
}

TEST_F(DirectMoves, ThatAreSwitchedOffGoByLibcuda)
{
  make(true, false);
  exchange();
  EXPECT_EQ(lengths("prefetch"), (std::vector<std::size_t>(8, 2)));
}

TEST_F(DirectMoves, ThatFailGoByLibcudaAndAreCounted)
{
  make(true);
  driver->answers["migrate"] = {status_code::driver_error, 31, "UVM_MIGRATE"};
  exchange();
  EXPECT_EQ(manager->statistics().failed_calls, 4U);
  EXPECT_STREQ(manager->statistics().last_failure.call, "UVM_MIGRATE");
  EXPECT_EQ(manager->statistics().evicted_bytes, blocks(16));
  EXPECT_LE(manager->statistics().resident_bytes, blocks(16));
}

TEST_F(DirectMoves, BringNoDiscardedBlock)
{
  driver->facts.discard = availability::yes();
  make(true);
  manager->on_allocate(at(0, 8), nullptr);
  manager->on_free(at(0, 8), nullptr);
  manager->on_allocate(at(8, 16), nullptr);  // the dead ones are dropped for it
  ASSERT_GT(manager->statistics().dropped_bytes, 0U);
  static_cast<void>(driver->take_calls());
  // Half a block of what was dropped: the rest of it is not this allocation's to renew.
  memory_range const half{slab_address, va_block_bytes / 2};
  manager->on_allocate(half, nullptr);
  std::vector<memory_range> renewed;
  for (auto const& call : driver->take_calls()) {
    if (call.name == "migrate") { EXPECT_EQ(call.device_id, location::host_id); }
    if (call.name == "discard_and_prefetch") { renewed.push_back(call.ranges[0]); }
  }
  EXPECT_EQ(renewed, (std::vector<memory_range>{at(0, 1)}));
}

}  // namespace
}  // namespace rmm_uvm
