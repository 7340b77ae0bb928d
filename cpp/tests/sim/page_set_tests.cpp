// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/page_set.hpp>
#include <rmm_uvm/sim/page_set_store.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace rmm_uvm::sim {
namespace {

TEST(PageSet, RangeHoldsExactlyItsPages)
{
  for (auto const& [first, last] :
       std::vector<std::pair<std::size_t, std::size_t>>{{3, 7}, {60, 70}, {0, 512}, {64, 128}}) {
    auto const pages = page_set::range(first, last);
    for (std::size_t page = 0; page < pages_per_block; ++page) {
      EXPECT_EQ(pages.test(page), page >= first && page < last);
    }
    EXPECT_EQ(pages.count(), last - first);
    EXPECT_EQ(pages.runs(), 1U);
  }
  EXPECT_TRUE(page_set::range(5, 5).none());
  EXPECT_TRUE(page_set::range(6, 5).none());
}

TEST(PageSet, RunsAreCountedAcrossWords)
{
  auto const pages = page_set::range(0, 1) | page_set::range(10, 20) | page_set::range(60, 130);
  EXPECT_EQ(pages.runs(), 3U);
  EXPECT_EQ((page_set::range(63, 64) | page_set::range(64, 65)).runs(), 1U);
  EXPECT_EQ((page_set::range(62, 63) | page_set::range(64, 65)).runs(), 2U);
  EXPECT_EQ(page_set{}.runs(), 0U);
}

TEST(PageSet, NextFindsTheNearestPageOrTheEnd)
{
  page_set pages;
  pages.set(5);
  pages.set(300);
  EXPECT_EQ(pages.next(0), 5U);
  EXPECT_EQ(pages.next(5), 5U);
  EXPECT_EQ(pages.next(6), 300U);
  EXPECT_EQ(pages.next(301), pages_per_block);
  EXPECT_EQ(pages.next(pages_per_block), pages_per_block);
}

TEST(PageSet, FirstTakesTheLowestPages)
{
  auto const pages = page_set::range(10, 20) | page_set::range(100, 200);
  EXPECT_EQ(pages.first(10), page_set::range(10, 20));
  EXPECT_EQ(pages.first(15), page_set::range(10, 20) | page_set::range(100, 105));
  EXPECT_EQ(pages.first(500), pages);
  EXPECT_TRUE(pages.first(0).none());
}

TEST(PageSet, OperatorsAreThoseOfSets)
{
  auto const low  = page_set::range(0, 100);
  auto const high = page_set::range(50, 150);
  EXPECT_EQ(low | high, page_set::range(0, 150));
  EXPECT_EQ(low & high, page_set::range(50, 100));
  EXPECT_EQ(low - high, page_set::range(0, 50));
  EXPECT_NE(low, high);
}

TEST(PageSetStore, KeepsNoMemoryForSetsOfAllOrNoPages)
{
  page_set_store store;
  auto const whole = page_set::range(0, 100);  // a short block
  auto handle      = page_set_store::empty;
  store.store(handle, whole, whole);
  EXPECT_EQ(handle, page_set_store::full);
  EXPECT_EQ(store.load(handle, whole), whole);
  store.store(handle, {}, whole);
  EXPECT_EQ(handle, page_set_store::empty);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(PageSetStore, UsesMemoryOfForgottenSetsAgain)
{
  page_set_store store;
  auto const whole = page_set::range(0, pages_per_block);
  std::vector<page_set_store::handle> handles(100, page_set_store::empty);
  for (std::size_t index = 0; index < handles.size(); ++index) {
    store.store(handles[index], page_set::range(index, index + 1), whole);
  }
  auto const bytes = store.bytes();
  for (std::size_t index = 0; index < handles.size(); index += 2) {
    store.store(handles[index], whole, whole);
  }
  for (std::size_t index = 0; index < handles.size(); index += 2) {
    store.store(handles[index], page_set::range(index, index + 2), whole);
  }
  EXPECT_EQ(store.bytes(), bytes);
  for (std::size_t index = 0; index < handles.size(); ++index) {
    EXPECT_EQ(store.load(handles[index], whole),
              page_set::range(index, index + (index % 2 == 0 ? 2 : 1)));
  }
}

}  // namespace
}  // namespace rmm_uvm::sim
