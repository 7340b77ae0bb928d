// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is going to leave is copied before it has to, and what that must not do.
#include "../support/late_driver.hpp"
#include "copies_fixture.hpp"

#include <rmm_uvm/residency/early_copy_worth.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

namespace rmm_uvm {
namespace {

using tests::blocks;

/** @brief A table is made and read; then more is needed than fits beside it. */
class EarlyCopies : public tests::CopiesOfTheHost {
 protected:
  static constexpr std::size_t table_blocks  = 10;
  static constexpr std::size_t result_blocks = 12;
  static constexpr std::size_t too_many      = table_blocks + 1 + result_blocks - budget_blocks;
  static constexpr int learning_rounds       = 8;

  [[nodiscard]] memory_range table() const { return at(0, table_blocks); }
  [[nodiscard]] memory_range other() const { return at(50); }
  [[nodiscard]] memory_range result() const { return at(table_blocks, result_blocks); }
  void make_table(std::size_t value)
  {
    manager->on_allocate(table(), nullptr);
    write(table(), value);
  }
  void read_table(std::size_t value, bool only_read = true)
  {
    for (int times = 0; times < 3; ++times) {
      announce(table(), only_read);
      read(table(), value);
    }
    announce(other(), false);  // so that the work before it is known to be done
  }
  /** @brief The table is used once more before, so that it cannot leave earlier. */
  void make_result(std::size_t value, bool only_read = true)
  {
    announce(table(), only_read);
    manager->on_allocate(result(), nullptr);
    write(result(), value + 100);
    announce(result());
    read(result(), value + 100);
    manager->on_free(result(), nullptr);
  }
  void end_round(std::size_t value)
  {
    announce(table());
    read(table(), value);
    manager->on_free(table(), nullptr);
  }
  void learn(bool only_read = true)
  {
    manage(eviction_policy::repeat);
    learn_as_it_is(only_read);
  }
  void learn_as_it_is(bool only_read = true)
  {
    manager->on_allocate(other(), nullptr);
    manager->pin(other());  // it stays
    for (int round = 0; round < learning_rounds; ++round) {
      make_table(1);
      read_table(1, only_read);
      make_result(1, only_read);
      end_round(1);
    }
    ASSERT_TRUE(manager->statistics().foresees);
  }
  [[nodiscard]] std::uint64_t copied_early() const
  {
    return manager->statistics().copied_early_bytes;
  }
};

TEST_F(EarlyCopies, WhatIsGoingToLeaveIsCopiedBeforeAndNothingIsWhenItLeaves)
{
  learn();
  auto const before = manager->statistics();
  make_table(7);
  read_table(7);
  auto const had_left = left();
  manager->run_pending();
  EXPECT_EQ(left() - had_left, blocks(too_many));  // no more than has to leave
  EXPECT_EQ(manager->statistics().copied_early_bytes - before.copied_early_bytes, blocks(too_many));
  EXPECT_EQ(device->view().resident_bytes(table()), table().bytes);  // it stays
  make_result(7);
  EXPECT_EQ(left() - had_left, blocks(too_many));
  EXPECT_EQ(manager->statistics().uncopied_bytes - before.uncopied_bytes, blocks(too_many));
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  end_round(7);
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
  EXPECT_EQ(manager->statistics().failed_calls, 0U);
  EXPECT_EQ(manager->statistics().overshoot_bytes, 0U);
}

TEST_F(EarlyCopies, NothingIsCopiedThatMayBeWritten)
{
  learn(false);
  auto const before = copied_early();
  make_table(7);
  read_table(7, false);
  manager->run_pending();
  EXPECT_EQ(copied_early(), before);
  EXPECT_EQ(advised_blocks(), 0U);
}

TEST_F(EarlyCopies, NothingIsCopiedBeforeAllOfItWasRead)
{
  learn();
  auto const before = copied_early();
  make_table(7);
  announce(other(), false);
  manager->run_pending();
  EXPECT_EQ(copied_early(), before);
}

TEST_F(EarlyCopies, WhatWasSaidToBeWrittenIsCopiedThoughNobodyReadIt)
{
  manage(eviction_policy::repeat);
  manager->on_allocate(other(), nullptr);
  manager->pin(other());
  auto const made = table();
  for (int round = 0; round <= learning_rounds; ++round) {
    auto const before = copied_early();
    make_table(7);
    manager->on_made({&made, 1});
    if (round == learning_rounds) {
      manager->run_pending();
      EXPECT_EQ(copied_early(), before);  // the work that writes it may be under way
    }
    announce(other(), false);
    if (round == learning_rounds) {
      manager->run_pending();
      EXPECT_EQ(copied_early(), before + blocks(too_many));
    }
    make_result(7);
    end_round(7);
  }
  make_table(8);
  manager->on_made({&made, 1});
  announce(other(), false);
  manager->run_pending();
  ASSERT_GT(advised_blocks(), 0U);
  announce(table(), false);  // in spite of that
  EXPECT_EQ(advised_blocks(), 0U);
}

TEST_F(EarlyCopies, NothingIsCopiedWherePageTablesCannotBeRead)
{
  lose_page_tables();
  learn();
  make_table(7);
  read_table(7);
  manager->run_pending();
  EXPECT_EQ(copied_early(), 0U);
}

TEST_F(EarlyCopies, NothingIsCopiedWhereAllFits)
{
  manage(eviction_policy::repeat);
  manager->on_allocate(other(), nullptr);
  manager->pin(other());  // it stays
  for (int round = 0; round < learning_rounds; ++round) {
    make_table(1);
    read_table(1);
    manager->run_pending();
    end_round(1);
  }
  EXPECT_EQ(copied_early(), 0U);
  EXPECT_EQ(left(), 0U);
}

TEST_F(EarlyCopies, UseThatMayWriteEndsTheCopyAndWhatItWroteLeaves)
{
  learn();
  make_table(7);
  read_table(7);
  manager->run_pending();
  ASSERT_GT(advised_blocks(), 0U);
  announce(table(), false);
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(device->view().resident_bytes(table()), table().bytes);
  write(table(), 8);
  EXPECT_EQ(manager->evict(table()), table().bytes);
  announce(table());
  read(table(), 8);
}

TEST_F(EarlyCopies, PageThatIsWrittenUnannouncedLeavesByACopy)
{
  learn();
  make_table(7);
  read_table(7);
  manager->run_pending();
  auto copied = table();
  for (std::size_t block = 0; block < table_blocks; ++block) {
    if (is_advised(at(block))) { copied = at(block); }
  }
  ASSERT_EQ(copied.bytes, va_block_bytes);
  memory_range const page{copied.address, 65536};
  write(page, 77);
  auto const before = left();
  EXPECT_EQ(manager->evict(copied), copied.bytes);
  EXPECT_GE(left(), before + page.bytes);
  EXPECT_LT(left(), before + copied.bytes);
  announce(copied);
  read(page, 77);
  read({page.end(), 65536}, 7);
}

TEST_F(EarlyCopies, BudgetThatEndsTakesThemAlong)
{
  learn();
  make_table(7);
  read_table(7);
  manager->run_pending();
  ASSERT_GT(advised_blocks(), 0U);
  manager->retire([] {});
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(device->view().resident_bytes(table()), table().bytes);
  read(table(), 7);
}

/** @brief A call that copies the table to the host has not returned yet. */
class EarlyCopiesUnderWay : public EarlyCopies {
 protected:
  void SetUp() override
  {
    EarlyCopies::SetUp();
    learn();
    make_table(7);
    read_table(7);
    manager->run_pending();
    ASSERT_GT(manager->statistics().kept_copy_bytes, 0U);
    set_under_way(true);
  }
  void end()
  {
    set_under_way(false);
    EXPECT_GT(manager->evict(result()), 0U);  // which tells whoever waits
  }
  /** @brief Has another thread do something that waits for the end. */
  template <typename Action>
  void expect_to_wait(Action const& action)
  {
    auto const waits = manager->statistics().waits;
    std::atomic<bool> done{false};
    std::thread other{[&] {
      action();
      done = true;
    }};
    while (manager->statistics().waits == waits && !done) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(done);
    end();
    other.join();
  }

 private:
  void set_under_way(bool under_way)
  {
    ledger_view view{ledger};
    view.each(table(), [under_way](block_record& block, memory_range) {
      block.busy    = under_way;
      block.copying = under_way;
    });
  }
};

TEST_F(EarlyCopiesUnderWay, AreNotWaitedForToRead)
{
  auto const waits = manager->statistics().waits;
  read_table(7);
  EXPECT_EQ(manager->statistics().waits, waits);
  end();
}

TEST_F(EarlyCopiesUnderWay, WhatLeavesIsWaitedForToRead)
{
  {
    ledger_view view{ledger};
    view.each(table(), [](block_record& block, memory_range) { block.copying = false; });
  }
  expect_to_wait([this] { announce(table()); });
}

TEST_F(EarlyCopiesUnderWay, AreWaitedForToWrite)
{
  expect_to_wait([this] { announce(table(), false); });
  EXPECT_EQ(advised_blocks(), 0U);
}

TEST_F(EarlyCopiesUnderWay, AreWaitedForToFree)
{
  expect_to_wait([this] { manager->on_free(table(), nullptr); });
  EXPECT_EQ(advised_blocks(), 0U);
}

/** @brief Others do something within the calls that copy, or that end copies. */
class EarlyCopiesBesideOthers : public EarlyCopies {
 protected:
  void SetUp() override
  {
    EarlyCopies::SetUp();
    driver               = std::make_shared<tests::late_driver>(device);
    auto settings        = residency_settings::of(blocks(budget_blocks));
    settings.background  = false;
    settings.keep_copies = true;
    settings.piece_bytes = blocks(1);
    manager = std::make_unique<residency_manager>(driver, ledger, settings, adviser.get());
    learn_as_it_is();
  }
  /** @brief Makes a table, and copies of the four blocks of it that come first. */
  void copy_some()
  {
    make_table(7);
    read_table(7);
    auto const before = copied_early();
    for (int piece = 0; piece < 100 && copied_early() == before; ++piece) {
      static_cast<void>(manager->run_pending_piece());
    }
    ASSERT_EQ(copied_early() - before, blocks(4));
    ASSERT_EQ(advised_blocks(), 4U);
  }

  std::shared_ptr<tests::late_driver> driver;
};

TEST_F(EarlyCopiesBesideOthers, NothingMoreIsCopiedOfWhatIsBeingFreed)
{
  copy_some();
  bool looked           = false;
  driver->before_advice = [&](memory_advice what) {
    if (what != memory_advice::unset_read_mostly || std::exchange(looked, true)) { return; }
    static_cast<void>(manager->run_pending_piece());  // the lock is not held now
  };
  manager->on_free(table(), nullptr);
  ASSERT_TRUE(looked);
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
  driver->before_advice = nullptr;
  make_table(8);
  EXPECT_EQ(manager->evict(table()), table().bytes);
  EXPECT_EQ(device->view().resident_bytes(table()), 0U);
}

TEST_F(EarlyCopiesBesideOthers, RequestThatNeedsTheirRoomWaitsForThem)
{
  make_table(7);
  read_table(7);
  std::atomic<bool> begun{false};
  std::atomic<bool> go{false};
  driver->after_migration = [&](memory_range, location where) {
    if (!where.is_host() || go || begun.exchange(true)) { return; }
    while (!go) {
      std::this_thread::yield();
    }
  };
  std::thread worker{[&] {
    while (!begun) {
      static_cast<void>(manager->run_pending_piece());
    }
  }};
  while (!begun) {
    std::this_thread::yield();
  }
  auto const before = manager->statistics();
  std::thread request{[&] {
    announce(table());
    manager->on_allocate(result(), nullptr);
  }};
  while (manager->statistics().evicted_bytes + manager->statistics().dropped_bytes ==
         before.evicted_bytes + before.dropped_bytes) {
    std::this_thread::yield();  // what can leave does
  }
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
  go = true;
  worker.join();
  request.join();
  EXPECT_EQ(manager->statistics().over_budget, before.over_budget);
  EXPECT_LE(device->view().resident_bytes(slab), blocks(budget_blocks));
}

TEST_F(EarlyCopiesBesideOthers, WhatIsWrittenMeanwhileIsNotCopiedAgain)
{
  make_table(7);
  read_table(7);
  auto const before       = copied_early();
  std::size_t calls       = 0;
  driver->after_migration = [&](memory_range range, location where) {
    if (!where.is_host()) { return; }
    calls += range.bytes / va_block_bytes;
    static_cast<void>(device->program().touch({range.address, 65536}, true));
  };
  manager->run_pending();
  EXPECT_EQ(copied_early(), before);
  EXPECT_GE(calls, too_many);
  EXPECT_LE(calls, table_blocks);
  EXPECT_EQ(advised_blocks(), 0U);
  EXPECT_EQ(manager->statistics().kept_copy_bytes, 0U);
}

TEST_F(EarlyCopiesBesideOthers, OneThatFailsDoesNotEndThem)
{
  copy_some();
  driver->after_migration = [&](memory_range range, location where) {
    if (where.is_host()) { static_cast<void>(device->program().touch(range, true)); }
  };
  static_cast<void>(manager->run_pending_piece());
  driver->after_migration = nullptr;
  make_result(7);
  end_round(7);
  auto const before = copied_early();
  make_table(8);
  read_table(8);
  manager->run_pending();
  EXPECT_EQ(copied_early() - before, blocks(too_many));
}

TEST(EarlyCopyWorth, GoesOnWhileLittleIsInVain)
{
  early_copy_worth worth{100};
  worth.was_in_vain(100);
  EXPECT_TRUE(worth.pays(0));
  worth.was_in_vain(1);
  EXPECT_FALSE(worth.pays(0));
  worth.was_of_use(1);
  EXPECT_TRUE(worth.pays(0));
}

TEST(EarlyCopyWorth, RestsAndTriesAgain)
{
  early_copy_worth worth{100};
  EXPECT_TRUE(worth.pays(50));
  worth.was_in_vain(150);
  EXPECT_FALSE(worth.pays(6'449));
  EXPECT_FALSE(worth.pays(6'450));
  EXPECT_TRUE(worth.pays(6'451));
}

TEST(EarlyCopyWorth, ForgetsWhatWasLongAgo)
{
  early_copy_worth worth{100};
  for (int times = 0; times < 100; ++times) {
    worth.was_of_use(100);
  }
  for (int times = 0; times < 20; ++times) {
    worth.was_in_vain(100);
  }
  EXPECT_FALSE(worth.pays(0));
}

}  // namespace
}  // namespace rmm_uvm
