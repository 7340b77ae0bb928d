// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/simulated_chain.hpp"

#include <rmm/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;

class ManagedMemoryResource : public testing::Test {
 protected:
  [[nodiscard]] void* allocate(std::size_t bytes)
  {
    return chain.managed.allocate(default_stream, bytes, 256);
  }

  tests::simulated_chain chain;
};

TEST_F(ManagedMemoryResource, AllocationIsASlabOfTheLedgerAndOnTheDevice)
{
  auto* const ptr    = allocate(blocks(2));
  auto const address = reinterpret_cast<std::uintptr_t>(ptr);
  EXPECT_EQ(chain.residency->ledger().slab_of(address), (memory_range{address, blocks(2)}));
  EXPECT_EQ(chain.managed.slab_bytes(), blocks(2));
  EXPECT_EQ(chain.account->used_bytes(), blocks(2));
  EXPECT_EQ(chain.device->view().resident_bytes({address, blocks(2)}), blocks(2));
}

TEST_F(ManagedMemoryResource, FreeGivesEverythingBack)
{
  auto* const ptr = allocate(blocks(2));
  chain.managed.deallocate(default_stream, ptr, blocks(2), 256);
  EXPECT_EQ(chain.managed.slab_bytes(), 0U);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
  EXPECT_EQ(chain.device->view().statistics().managed_bytes, 0U);
}

TEST_F(ManagedMemoryResource, SlabModeNeverLeavesTheSlabToFaults)
{
  managed_memory_resource resource{chain.residency, chain.account, prefetch_mode::never};
  auto* const ptr = resource.allocate(default_stream, blocks(2), 256);
  EXPECT_NE(ptr, nullptr);
  EXPECT_EQ(chain.device->view().statistics().resident_bytes, 0U);
}

TEST_F(ManagedMemoryResource, CapIsNamedInTheErrorAndHoldsForAllResources)
{
  managed_memory_resource other{chain.residency, chain.account, prefetch_mode::automatic};
  auto* const ptr = other.allocate(default_stream, blocks(500), 256);
  EXPECT_NE(ptr, nullptr);
  try {
    static_cast<void>(allocate(blocks(13)));
    FAIL() << "over the cap";
  } catch (rmm::out_of_memory const& error) {
    EXPECT_NE(std::string{error.what()}.find("RMM_UVM_MANAGED_LIMIT"), std::string::npos);
  }
  EXPECT_EQ(chain.account->used_bytes(), blocks(500));
  EXPECT_NE(allocate(blocks(12)), nullptr);
}

TEST_F(ManagedMemoryResource, SecondFreeIsRefusedAndReported)
{
  auto* const ptr = allocate(blocks(1));
  chain.managed.deallocate(default_stream, ptr, blocks(1), 256);
  testing::internal::CaptureStderr();
  chain.managed.deallocate(default_stream, ptr, blocks(1), 256);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("freed before"), std::string::npos);
  EXPECT_EQ(chain.managed.refused_frees(), 1U);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
}

TEST_F(ManagedMemoryResource, FreeWithAWrongSizeIsRefusedAndTheSlabStays)
{
  auto* const ptr = allocate(blocks(2));
  testing::internal::CaptureStderr();
  chain.managed.deallocate(default_stream, ptr, blocks(1), 256);
  auto const said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(std::to_string(blocks(2))), std::string::npos) << said;
  EXPECT_EQ(chain.managed.slab_bytes(), blocks(2));
  EXPECT_TRUE(chain.managed.try_deallocate(default_stream, ptr, blocks(2)));
}

TEST_F(ManagedMemoryResource, NullIsFreedTrivially)
{
  EXPECT_TRUE(chain.managed.try_deallocate(default_stream, nullptr, 100));
  EXPECT_EQ(chain.managed.refused_frees(), 0U);
}

}  // namespace
}  // namespace rmm_uvm::mr
