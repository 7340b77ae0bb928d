// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is going to leave is copied before it has to, and what that must not do.
#include "copies_fixture.hpp"

#include <rmm_uvm/residency/early_copy_worth.hpp>

#include <algorithm>
#include <atomic>
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
  [[nodiscard]] memory_range between() const { return at(60, 2); }
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

TEST_F(EarlyCopies, AreMadeBesideMemoryThatComesAndGoes)
{
  for (bool const too_early : {false, true}) {
    manage(eviction_policy::repeat);
    manager->on_allocate(other(), nullptr);
    manager->pin(other());
    for (int round = 0; round <= learning_rounds; ++round) {
      auto const before = copied_early();
      make_table(1);
      manager->on_allocate(between(), nullptr);  // which is there now, and before the result is not
      read_table(1);
      if (round == learning_rounds && !too_early) {
        manager->run_pending();
        EXPECT_EQ(copied_early() - before, blocks(too_many));
      }
      manager->on_free(between(), nullptr);
      make_result(1);
      end_round(1);
      if (round == learning_rounds && too_early) {  // all but what is in every round is gone
        manager->run_pending();
        EXPECT_EQ(copied_early(), before);
      }
    }
    manager.reset();
    ledger.remove_slab(slab.address);
    ledger.add_slab(slab);
  }
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
    EXPECT_EQ(advised_blocks(), 0U);
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

TEST_F(EarlyCopiesUnderWay, AreWaitedForToWrite)
{
  expect_to_wait([this] { announce(table(), false); });
}

TEST_F(EarlyCopiesUnderWay, AreWaitedForToFree)
{
  expect_to_wait([this] { manager->on_free(table(), nullptr); });
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
