// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What kernels fault in unannounced is found, and the budget holds: beside the simulated device,
// which knows.
#include "../support/blocks.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::block_range;
using tests::blocks;

class UnseenArrivals : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks = 16;
  static constexpr std::size_t slab_blocks   = 64;

  void make(eviction_policy policy = eviction_policy::lru, bool fetch = true)
  {
    config.capacity_bytes = blocks(2 * slab_blocks);  // a GPU that is larger than the budget
    device                = std::make_shared<sim::simulated_device>(config);
    ASSERT_TRUE(device->allocate_managed(slab.bytes, slab.address).ok());
    ledger.add_slab(slab);
    auto settings       = residency_settings::of(blocks(budget_blocks));
    settings.policy     = policy;
    settings.fetch      = fetch;
    settings.background = background;
    manager             = std::make_unique<residency_manager>(device, ledger, settings);
  }
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count = 1) const
  {
    return block_range(slab.address, first, count);
  }
  void allocate_all(std::size_t count)
  {
    for (std::size_t first = 0; first < count; first += 4) {
      manager->on_allocate(at(first, 4), nullptr);
      kernel(first, 4);
    }
  }
  void announce(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), nullptr);
  }
  void kernel(std::size_t first, std::size_t count)
  {
    ASSERT_TRUE(device->program().touch(at(first, count), true).ok());
  }
  void touch_page(std::size_t block)
  {
    ASSERT_TRUE(device->program().touch({at(block).address + (1U << 20U), 4096}, false).ok());
  }
  [[nodiscard]] std::size_t truth() const { return device->view().resident_bytes(slab); }

  bool background{false};
  sim::simulated_device_config config;
  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks)};
  residency_ledger ledger;
  std::unique_ptr<residency_manager> manager;
};

TEST_F(UnseenArrivals, AreFoundAndOthersLeaveForThem)
{
  make();
  allocate_all(48);  // 0 to 31 leave
  kernel(0, 8);
  EXPECT_EQ(truth(), blocks(budget_blocks + 8));
  manager->run_pending();
  auto const counts = manager->statistics();
  EXPECT_EQ(counts.found_bytes, blocks(8));
  EXPECT_EQ(counts.overshoot_bytes, 0U);
  EXPECT_LE(truth(), blocks(budget_blocks));
  EXPECT_EQ(truth(), counts.resident_bytes);
  EXPECT_EQ(device->view().resident_bytes(at(0, 8)), blocks(8));  // they were used last
}

TEST_F(UnseenArrivals, OfAMachineThatDoesNotTellStayBesideTheBudget)
{
  config.host_pages = false;
  make();
  allocate_all(48);
  kernel(0, 8);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().found_bytes, 0U);
  EXPECT_GT(truth(), blocks(budget_blocks));
  EXPECT_EQ(manager->statistics().overshoot_bytes, blocks(8));
}

TEST_F(UnseenArrivals, WithoutAThreadAreFoundByTheNextRequest)
{
  make();
  allocate_all(48);
  kernel(0, 8);
  manager->on_allocate(at(48), nullptr);
  EXPECT_LE(truth(), blocks(budget_blocks));
  kernel(8, 8);
  announce(16, 1);
  EXPECT_LE(truth(), blocks(budget_blocks));
}

TEST_F(UnseenArrivals, OfSomePagesOfABlockAreFoundToo)
{
  make();
  allocate_all(48);
  for (std::size_t block = 3; block < 7; ++block) {
    touch_page(block);
  }
  manager->run_pending();
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
  EXPECT_EQ(manager->statistics().found_bytes, blocks(4));
  EXPECT_LE(truth(), blocks(budget_blocks));
}

TEST_F(UnseenArrivals, OfSomePagesHideNoneThatComeLater)
{
  make();
  allocate_all(48);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t block = 0; block < 8; ++block) {
      touch_page(block);
    }
    manager->run_pending();
    for (std::size_t first = 8; first < 48; first += 4) {  // the rest of them never comes
      announce(first, 4);
      kernel(first, 4);
    }
    manager->run_pending();
    kernel(0, 3);
    manager->run_pending();
    ASSERT_LE(truth(), blocks(budget_blocks)) << "round " << round;
  }
}

TEST_F(UnseenArrivals, OfSomePagesOfManyBlocksAreAllFound)
{
  make();
  allocate_all(slab_blocks);
  for (std::size_t block = 0; block < slab_blocks - budget_blocks; ++block) {
    touch_page(block);
  }
  manager->run_pending();
  EXPECT_EQ(manager->statistics().found_bytes, blocks(slab_blocks - budget_blocks));
}

TEST_F(UnseenArrivals, OfWhichTheRestComesLaterAreNotLookedForForEver)
{
  make();
  allocate_all(48);
  for (std::size_t block = 0; block < 8; ++block) {
    touch_page(block);
  }
  manager->run_pending();
  kernel(0, 8);
  manager->run_pending();
  auto const before = manager->statistics();
  manager->run_pending();
  auto const after = manager->statistics();
  EXPECT_EQ(after.found_bytes, blocks(8));
  EXPECT_EQ(after.overshoot_bytes, 0U);
  EXPECT_EQ(after.looks, before.looks);
}

TEST_F(UnseenArrivals, AreNotLookedForWhileNothingCame)
{
  make();
  allocate_all(48);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t first = 0; first < 48; first += 4) {
      announce(first, 4);
      kernel(first, 4);
      manager->run_pending();
    }
  }
  EXPECT_EQ(manager->statistics().looks, 0U);
}

TEST_F(UnseenArrivals, ThatAreSentBackLoseNoFurtherRoom)
{
  make();
  allocate_all(48);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t first = 0; first < 48; first += 4) {
      kernel(first, 4);
      manager->run_pending();
      ASSERT_LE(truth(), blocks(budget_blocks)) << "round " << round << ", block " << first;
      ASSERT_EQ(truth(), manager->statistics().resident_bytes);
    }
  }
}

TEST_F(UnseenArrivals, BindTheFaultDrivenEmulationToo)
{
  make(eviction_policy::fifo, false);
  allocate_all(48);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t first = 0; first < 48; first += 4) {
      kernel(first, 4);
      announce(0, 0);
      manager->run_pending();
      ASSERT_LE(truth(), blocks(budget_blocks));
    }
  }
}

TEST_F(UnseenArrivals, ThatCannotBeLookedForAreCountedAsAFailureOnce)
{
  make();
  allocate_all(48);
  kernel(0, 8);
  device->answers().plan("not_on_host", {status_code::driver_error, 5, "pagemap"}, 0);
  manager->run_pending();
  manager->run_pending();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  EXPECT_EQ(manager->statistics().found_bytes, 0U);
  EXPECT_EQ(manager->statistics().overshoot_bytes, blocks(8));
}

TEST_F(UnseenArrivals, WithoutAStreamOfEvictionsAreCountedAsAFailureOnce)
{
  make();
  allocate_all(48);
  kernel(0, 8);
  device->answers().plan("own_stream", {status_code::driver_error, 5, "own_stream"}, 0);
  manager->run_pending();
  EXPECT_EQ(manager->statistics().failed_calls, 1U);
  EXPECT_EQ(manager->statistics().found_bytes, 0U);
}

TEST_F(UnseenArrivals, ThatAreFreedAreDroppedAndNotCopied)
{
  make();
  allocate_all(48);
  kernel(0, 8);
  manager->on_free(at(0, 8), nullptr);
  auto const before = manager->statistics();
  manager->run_pending();
  auto const after = manager->statistics();
  EXPECT_LE(truth(), blocks(budget_blocks));
  EXPECT_EQ(after.dropped_bytes - before.dropped_bytes, blocks(8));
}

TEST_F(UnseenArrivals, OfRandomProgramsNeverStayBesideTheBudget)
{
  for (auto const policy :
       {eviction_policy::lru, eviction_policy::repeat, eviction_policy::correlation}) {
    ledger.remove_slab(slab.address);
    make(policy);
    allocate_all(slab_blocks);
    std::mt19937_64 random{7};
    for (int step = 0; step < 500; ++step) {
      auto const first = random() % slab_blocks;
      auto const count = 1 + random() % std::min<std::size_t>(6, slab_blocks - first);
      if (random() % 3 == 0) { announce(first, count); }
      kernel(first, count);
      manager->run_pending();
      ASSERT_LE(truth(), blocks(budget_blocks)) << "step " << step;
      ASSERT_EQ(manager->statistics().overshoot_bytes, 0U);
    }
  }
}

TEST_F(UnseenArrivals, AreFoundByTheThreadWithoutAnyCall)
{
  background = true;
  make();
  allocate_all(48);
  manager->flush();
  kernel(0, 8);
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (truth() > blocks(budget_blocks) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_LE(truth(), blocks(budget_blocks));
}

}  // namespace
}  // namespace rmm_uvm
