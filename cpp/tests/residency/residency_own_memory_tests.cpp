// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Our own memory fails at the 1st, 2nd, ... use on every path to and from a neighbour: no block is
// lost or waited for, and no claim stays that nothing stands behind.
#include "../support/blocks.hpp"
#include "../support/failing_new.hpp"
#include "../support/silent_driver.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr int other                = 1;
constexpr std::size_t block_count  = 64;
constexpr std::size_t budget_count = 96;

/** @brief A manager beside one neighbour, and all that can be asked of where its blocks are. */
struct beside_setting {
  std::shared_ptr<tests::silent_driver> driver{std::make_shared<tests::silent_driver>()};
  std::shared_ptr<free_memory_lender> lender{std::make_shared<free_memory_lender>()};
  residency_ledger ledger;
  memory_adviser adviser{driver, ledger};
  std::unique_ptr<residency_manager> manager;

  beside_setting()
  {
    auto settings        = residency_settings::of(blocks(budget_count));
    settings.background  = false;
    settings.policy      = eviction_policy::lru;
    settings.neighbors   = {{other}};
    settings.lender      = lender;
    settings.copy_beside = true;
    settings.in_place    = true;
    settings.multipath   = true;
    settings.rates       = {50'000'000'000, 25'000'000'000, 200'000'000'000, 200'000'000'000};
    ledger.add_slab(slab());
    manager = std::make_unique<residency_manager>(driver, ledger, settings, &adviser);
    manager->on_allocate(at(0, block_count), nullptr);
  }
  [[nodiscard]] static memory_range slab() { return at(0, 128); }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count)
  {
    return tests::block_range(tests::slab_address, first, count);
  }
  void touch(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), nullptr);
  }
  void evict() { static_cast<void>(manager->evict(at(0, block_count))); }
  /** @brief The neighbour lends nothing, or as much as there is. */
  void lend(bool any)
  {
    driver->neighbor_level.free_bytes = any ? driver->neighbor_level.total_bytes : 0;
  }
  /** @brief The owner took all but so many blocks of its reserve. */
  void take_reserve(std::size_t missing)
  {
    driver->neighbor_level.free_bytes = driver->neighbor_level.total_bytes / 16 - blocks(missing);
  }
  /** @brief So many uses of one block that others than it grow cold. */
  void use_others()
  {
    for (int use = 0; use < 65; ++use) {
      touch(block_count - 1, 1);
    }
  }
  [[nodiscard]] std::size_t count(block_place place)
  {
    std::size_t found = 0;
    ledger_view view{ledger};
    view.each(at(0, block_count), [&](block_record const& block, memory_range) {
      if (block.place == place) { ++found; }
      EXPECT_FALSE(block.busy);
      EXPECT_EQ(block.holds, 0U);
    });
    return found;
  }
  /** @brief Everything is somewhere, and the books say where. */
  void expect_consistent()
  {
    auto const found = manager->statistics();
    EXPECT_EQ(count(block_place::nowhere), 0U);
    EXPECT_EQ(found.resident_bytes, blocks(count(block_place::device)));
    EXPECT_EQ(found.harvested_bytes, blocks(count(block_place::beside)));
    EXPECT_EQ(lender->held(other), found.harvested_bytes);
    auto const free_bytes = blocks(1000);  // none of it is still to come
    EXPECT_EQ(lender->claim(other, free_bytes, free_bytes, 0), free_bytes);
    lender->cancel(other, free_bytes);
  }
};

/** @brief Fails the 1st, 2nd, ... `new` of an action, each from the same state. */
void fail_each(std::function<void(beside_setting&)> const& prepare,
               std::function<void(beside_setting&)> const& action)
{
  std::size_t failures = 0;
  for (std::size_t nth = 0;; ++nth) {
    beside_setting setting;
    prepare(setting);
    setting.expect_consistent();
    bool over = false;
    {
      tests::failing_new const failing{nth};
      action(setting);
      over = !tests::failing_new::has_failed();
    }
    setting.expect_consistent();
    // Whatever failed, the same is possible afterwards, and everything comes home.
    setting.lend(true);
    action(setting);
    setting.touch(0, block_count);
    EXPECT_EQ(setting.count(block_place::device), block_count) << "failure " << nth;
    setting.expect_consistent();
    if (over) { break; }
    ++failures;
    ASSERT_LT(nth, 300U);
  }
  EXPECT_GT(failures, 0U);
}

TEST(ResidencyOwnMemory, FailsOnTheWayToANeighbour)
{
  fail_each([](auto&) {}, [](auto& setting) { setting.evict(); });
}

TEST(ResidencyOwnMemory, FailsOnTheWayBack)
{
  fail_each([](auto& setting) { setting.evict(); },
            [](auto& setting) { setting.touch(0, block_count); });
}

TEST(ResidencyOwnMemory, FailsOnTheWayByANeighbour)
{
  fail_each(
    [](auto& setting) {
      setting.lend(false);
      setting.evict();
      setting.lend(true);
    },
    [](auto& setting) { setting.touch(0, block_count); });
}

TEST(ResidencyOwnMemory, FailsWhileMemoryIsGivenBack)
{
  fail_each(
    [](auto& setting) {
      setting.evict();
      setting.take_reserve(20);
    },
    [](auto& setting) { setting.manager->run_pending(); });
}

TEST(ResidencyOwnMemory, FailsWhilePinnedBlocksComeHome)
{
  fail_each(
    [](auto& setting) {
      setting.evict();
      setting.manager->pin(beside_setting::at(0, block_count));
      setting.take_reserve(20);
    },
    [](auto& setting) { setting.manager->run_pending(); });
}

TEST(ResidencyOwnMemory, FailsWhileCopiesAreMadeAndEnd)
{
  auto const grow_cold = [](auto& setting) {
    setting.evict();
    setting.touch(block_count - 1, 1);
    setting.use_others();
  };
  fail_each(grow_cold, [](auto& setting) { setting.manager->run_pending(); });
  fail_each(
    [&](auto& setting) {
      grow_cold(setting);
      setting.manager->run_pending();
      EXPECT_GT(setting.manager->statistics().copied_beside_bytes, 0U);
    },
    [](auto& setting) { setting.touch(0, block_count); });
  fail_each(
    [&](auto& setting) {
      grow_cold(setting);
      setting.manager->run_pending();
      setting.take_reserve(20);
    },
    [](auto& setting) { setting.manager->run_pending(); });
}

TEST(ResidencyOwnMemory, FailsWhileAUserAdvises)
{
  fail_each([](auto& setting) { setting.evict(); },
            [](auto& setting) {
              auto const range = beside_setting::at(0, 8);
              setting.adviser.advise(range, {true, std::nullopt});
              setting.manager->on_advised(range);
            });
}

}  // namespace
}  // namespace rmm_uvm
