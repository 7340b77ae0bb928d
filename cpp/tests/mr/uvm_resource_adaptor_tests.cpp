// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/simulated_chain.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;

/** @brief Passes everything on, some bytes further, and keeps the alignment of the last free. */
struct noting_resource {
  managed_memory_resource upstream;
  std::size_t shift_bytes                      = 0;
  std::shared_ptr<std::size_t> freed_alignment = std::make_shared<std::size_t>(0);

  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    auto* const ptr = upstream.allocate(stream, bytes + shift_bytes, alignment);
    return static_cast<char*>(ptr) + shift_bytes;
  }
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t alignment) noexcept
  {
    *freed_alignment  = alignment;
    auto* const whole = static_cast<char*>(ptr) - shift_bytes;
    upstream.deallocate(stream, whole, bytes + shift_bytes, alignment);
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    return upstream.allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    upstream.deallocate_sync(ptr, bytes, alignment);
  }
  bool operator==(noting_resource const& other) const noexcept
  {
    return freed_alignment == other.freed_alignment;
  }
  friend void get_property(noting_resource const&, cuda::mr::device_accessible) noexcept {}
};

class UvmResourceAdaptor : public testing::Test {
 protected:
  [[nodiscard]] void* allocate(std::size_t bytes)
  {
    return chain.adaptor.allocate(default_stream, bytes, 256);
  }
  void free(void* ptr, std::size_t bytes)
  {
    chain.adaptor.deallocate(default_stream, ptr, bytes, 256);
  }

  tests::simulated_chain chain;
};

TEST_F(UvmResourceAdaptor, CountsWhatIsLiveAndThePeak)
{
  auto* const first  = allocate(1'000);
  auto* const second = allocate(500);
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 1'500U);
  free(first, 1'000);
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 500U);
  EXPECT_EQ(chain.adaptor.peak_bytes(), 1'500U);
  chain.adaptor.reset_peak();
  EXPECT_EQ(chain.adaptor.peak_bytes(), 500U);
  free(second, 500);
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 0U);
}

TEST_F(UvmResourceAdaptor, SecondFreeNeverReachesTheUpstream)
{
  auto* const ptr = allocate(1'000);
  free(ptr, 1'000);
  testing::internal::CaptureStderr();
  free(ptr, 1'000);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("UvmResourceAdaptor"), std::string::npos);
  EXPECT_EQ(chain.adaptor.refused_frees(), 1U);
  EXPECT_EQ(chain.managed.refused_frees(), 0U);
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 0U);
}

TEST_F(UvmResourceAdaptor, FreeWithAWrongSizeIsRefusedAndTheAllocationStays)
{
  auto* const ptr = allocate(1'000);
  EXPECT_FALSE(chain.adaptor.try_deallocate(default_stream, ptr, 999));
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 1'000U);
  EXPECT_TRUE(chain.adaptor.try_deallocate(default_stream, ptr, 1'000));
}

TEST_F(UvmResourceAdaptor, UpstreamIsGivenTheAlignmentThatItAllocatedWith)
{
  noting_resource below{chain.managed};
  uvm_resource_adaptor adaptor{below, chain.residency, prefetch_mode::automatic};
  auto* const ptr = adaptor.allocate(default_stream, 1'000, 512);
  adaptor.deallocate(default_stream, ptr, 1'000, 512);
  EXPECT_EQ(*below.freed_alignment, 512U);
}

TEST_F(UvmResourceAdaptor, MemoryOfAnUpstreamThatDoesNotLieAsAskedGoesBack)
{
  noting_resource below{chain.managed, 256};
  uvm_resource_adaptor adaptor{below, chain.residency, prefetch_mode::automatic};
  EXPECT_THROW(static_cast<void>(adaptor.allocate(default_stream, 1'000, 512)), rmm::bad_alloc);
  EXPECT_EQ(*below.freed_alignment, 512U);
  EXPECT_EQ(adaptor.allocated_bytes(), 0U);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
}

TEST_F(UvmResourceAdaptor, AllocationWhileNothingWasEvictedIssuesNoPrefetch)
{
  auto* const ptr = allocate(blocks(4));
  EXPECT_NE(ptr, nullptr);
  EXPECT_EQ(chain.residency->statistics().prefetch_calls, 0U);
  EXPECT_EQ(chain.residency->statistics().discard_calls, 0U);
}

TEST_F(UvmResourceAdaptor, AlwaysPrefetchesEachAllocation)
{
  uvm_resource_adaptor always{chain.managed, chain.residency, prefetch_mode::always};
  auto* const ptr = always.allocate(default_stream, blocks(4), 256);
  EXPECT_NE(ptr, nullptr);
  EXPECT_EQ(chain.residency->statistics().prefetched_bytes, blocks(4));
}

TEST_F(UvmResourceAdaptor, MemoryOverTheDeviceIsStillHandedOut)
{
  auto* const ptr = allocate(blocks(tests::simulated_chain::capacity_blocks + 10));
  EXPECT_NE(ptr, nullptr);
  EXPECT_EQ(chain.device->view().statistics().evicted_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::mr
