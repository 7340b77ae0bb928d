// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A host that is full, with a third tier behind it, and device memory that goes page by page: by
// hand.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

/** @brief A device of two blocks with a range of five, beside a host of two. */
struct small_device {
  explicit small_device(simulated_device_config config)
    : device{with_sizes(config)}, range{0, blocks(5)}
  {
    EXPECT_TRUE(device.allocate_managed(range.bytes, range.address).ok());
  }

  [[nodiscard]] status touch(std::size_t block)
  {
    return device.program().touch(block_range(range.address, block, 1), true);
  }
  [[nodiscard]] simulated_statistics counts() const { return device.view().statistics(); }

  [[nodiscard]] static simulated_device_config with_sizes(simulated_device_config config)
  {
    config.capacity_bytes = blocks(2);
    config.host_bytes     = blocks(2);
    return config;
  }

  simulated_device device;
  memory_range range;
};

[[nodiscard]] simulated_device_config with_third_tier(std::size_t tier_blocks)
{
  simulated_device_config config;
  config.behind_host.capacity_bytes = blocks(tier_blocks);
  return config;
}

TEST(ThirdTier, OldestOfAFullHostGoesOnAndComesBack)
{
  small_device given{with_third_tier(8)};
  for (std::size_t block = 0; block < 4; ++block) {
    ASSERT_TRUE(given.touch(block).ok());
  }
  EXPECT_EQ(given.counts().to_third_tier_bytes, 0U);
  ASSERT_TRUE(given.touch(4).ok());  // 2 leaves the device, and 0 the host
  EXPECT_EQ(given.counts().third_tier_bytes, blocks(1));
  ASSERT_TRUE(given.touch(0).ok());  // 3 leaves the device, 1 and then 2 the host
  EXPECT_EQ(given.counts().to_third_tier_bytes, blocks(3));
  EXPECT_EQ(given.counts().from_third_tier_bytes, blocks(1));
  EXPECT_EQ(given.counts().third_tier_bytes, blocks(2));
  EXPECT_EQ(given.counts().host_page_bytes, blocks(2));
}

TEST(ThirdTier, HostWithoutOneRunsOut)
{
  small_device given{with_third_tier(0)};
  for (std::size_t block = 0; block < 4; ++block) {
    ASSERT_TRUE(given.touch(block).ok());
  }
  EXPECT_FALSE(given.touch(4).ok());
}

TEST(ThirdTier, OneThatIsFullRunsOut)
{
  small_device given{with_third_tier(1)};
  for (std::size_t block = 0; block < 5; ++block) {
    ASSERT_TRUE(given.touch(block).ok());
  }
  EXPECT_FALSE(given.touch(0).ok());
}

TEST(EvictPages, OnlyWhatIsNeededLeaves)
{
  simulated_device_config config;
  config.driver.evict_pages = true;
  small_device given{config};
  ASSERT_TRUE(given.touch(0).ok());
  ASSERT_TRUE(given.touch(1).ok());
  // 64 KiB come around a fault, and the first 64 KiB of the oldest block leave for them.
  ASSERT_TRUE(given.device.program().touch({given.range.address + blocks(2), 1}, true).ok());
  EXPECT_EQ(given.counts().evicted_bytes, 65'536U);
  EXPECT_EQ(given.counts().resident_bytes, blocks(2));
  auto const first = block_range(given.range.address, 0, 1);
  EXPECT_EQ(given.device.view().resident_bytes(first), blocks(1) - 65'536U);
}

}  // namespace
}  // namespace rmm_uvm::sim
