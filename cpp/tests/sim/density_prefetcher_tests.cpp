// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The kernel driver's prefetcher; the expected services are worked out from uvm_perf_prefetch.c.
#include <rmm_uvm/sim/density_prefetcher.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {
namespace {

constexpr std::size_t pages_per_kib = 4;  // KiB in a page

/** @brief KiB that each service brings when a cold block is touched upwards, a fault at a time. */
[[nodiscard]] std::vector<std::size_t> sequential_fill(std::uint32_t threshold)
{
  driver_settings const settings{.prefetch_threshold = threshold};
  std::vector<std::size_t> sizes;
  page_set resident;
  for (std::size_t page = 0; page < pages_per_block; ++page) {
    if (resident.test(page)) { continue; }
    auto const brought =
      prefetched_with(resident, page_set::range(page, page + 1), pages_per_block, settings);
    EXPECT_TRUE((brought & resident).none());
    resident |= brought;
    sizes.push_back(brought.count() * pages_per_kib);
  }
  return sizes;
}

TEST(DensityPrefetcher, FillsABlockInTheServicesOfItsThreshold)
{
  using sizes = std::vector<std::size_t>;
  for (auto const threshold : {0U, 3U}) {
    EXPECT_EQ(sequential_fill(threshold), sizes{2048});
  }
  EXPECT_EQ(sequential_fill(4), (sizes{1024, 1024}));
  EXPECT_EQ(sequential_fill(12), (sizes{512, 1536}));
  EXPECT_EQ(sequential_fill(13), (sizes{256, 1792}));
  EXPECT_EQ(sequential_fill(25), (sizes{128, 384, 1536}));
  EXPECT_EQ(sequential_fill(49), (sizes{128, 128, 256, 512, 1024}));
  EXPECT_EQ(sequential_fill(51), (sizes{64, 64, 128, 256, 512, 1024}));
  EXPECT_EQ(sequential_fill(75).size(), 20U);
  EXPECT_EQ(sequential_fill(99), sizes(32, 64));
  EXPECT_EQ(sequential_fill(100), sizes(512, 4));
}

TEST(DensityPrefetcher, HalfIsNotMoreThanHalf)
{
  // A fault in every second 64 KiB of the lower half: exactly 50 % of each part.
  page_set faulted;
  for (std::size_t page = 0; page < pages_per_block; page += 2 * pages_per_big_page) {
    faulted.set(page);
  }
  auto const alone = prefetched_with({}, faulted, pages_per_block, {.prefetch_threshold = 51});
  EXPECT_EQ(alone.count(), pages_per_block / 2);
  faulted.set(pages_per_big_page);  // one 64 KiB more tips the whole block
  auto const tipped = prefetched_with({}, faulted, pages_per_block, {.prefetch_threshold = 50});
  EXPECT_EQ(tipped.count(), pages_per_block);
}

TEST(DensityPrefetcher, SwitchedOffBringsWhatFaulted)
{
  auto const faulted = page_set::range(7, 9);
  EXPECT_EQ(prefetched_with({}, faulted, pages_per_block, {.prefetch = false}), faulted);
  EXPECT_EQ(prefetched_with({}, faulted, pages_per_block, {.min_faults = 3}), faulted);
  EXPECT_GT(prefetched_with({}, faulted, pages_per_block, {.min_faults = 2}).count(), 2U);
}

TEST(DensityPrefetcher, NeverGoesPastTheEndOfAShortBlock)
{
  constexpr std::size_t pages = 40;
  auto const brought          = prefetched_with({}, page_set::range(33, 34), pages, {});
  EXPECT_EQ(brought - page_set::range(0, pages), page_set{});
  EXPECT_TRUE(brought.test(39));
}

}  // namespace
}  // namespace rmm_uvm::sim
