// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/simulated_chain.hpp"

#include <rmm_uvm/mr/observed_resource.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;

/** @brief Keeps the ranges that it is told of. */
class keeping_observer final : public memory_observer {
 public:
  std::vector<memory_range> allocations;
  std::vector<memory_range> frees;
  int device{-1};

  void allocated(int device_id, memory_range range, stream_handle /*stream*/) noexcept override
  {
    device = device_id;
    allocations.push_back(range);
  }
  void freed(int /*device_id*/, memory_range range, stream_handle /*stream*/) noexcept override
  {
    frees.push_back(range);
  }
  void touched(int, memory_range, bool, bool) noexcept override {}
};

[[nodiscard]] memory_range range_of(void const* ptr, std::size_t bytes)
{
  return {reinterpret_cast<std::uintptr_t>(ptr), bytes};
}

class ObservedResource : public testing::Test {
 protected:
  ObservedResource() { observed.observers().set_account(told); }

  tests::simulated_chain chain;
  std::shared_ptr<keeping_observer> told = std::make_shared<keeping_observer>();
  observed_resource observed{chain.managed, 3};
};

TEST_F(ObservedResource, TellsOfWhatIsAllocatedAndFreed)
{
  auto* const first  = observed.allocate(default_stream, blocks(1), 256);
  auto* const second = observed.allocate_sync(blocks(2), 256);
  std::vector const both{range_of(first, blocks(1)), range_of(second, blocks(2))};
  EXPECT_EQ(told->allocations, both);
  EXPECT_EQ(told->device, 3);
  observed.deallocate(default_stream, first, blocks(1), 256);
  observed.deallocate_sync(second, blocks(2), 256);
  EXPECT_EQ(told->frees, both);
  observed.observers().end_account(told.get());
  observed.deallocate_sync(observed.allocate_sync(blocks(1), 256), blocks(1), 256);
  EXPECT_EQ(told->allocations.size(), 2U);
  EXPECT_EQ(told->frees.size(), 2U);
}

TEST_F(ObservedResource, TellsNothingOfWhatFails)
{
  EXPECT_THROW(static_cast<void>(observed.allocate(
                 default_stream, blocks(tests::simulated_chain::limit_blocks + 1), 256)),
               rmm::out_of_memory);
  EXPECT_TRUE(told->allocations.empty());
  // And it is not thought to be in there for ever.
  observed.deallocate_sync(observed.allocate_sync(blocks(1), 256), blocks(1), 256);
  EXPECT_EQ(told->allocations.size(), 1U);
}

TEST_F(ObservedResource, CopiesShareWhoIsToldAndOutliveIt)
{
  auto const copy = std::make_unique<observed_resource>(observed);
  auto other      = std::make_unique<observed_resource>(*copy);
  EXPECT_EQ(*copy, observed);
  auto* const ptr = copy->allocate_sync(blocks(1), 256);
  other->deallocate_sync(ptr, blocks(1), 256);
  EXPECT_EQ(told->allocations, told->frees);
  EXPECT_EQ(told->frees.size(), 1U);
}

TEST_F(ObservedResource, OverAnotherIsTheOnlyOneThatTells)
{
  observed_resource over{observed, 3};
  EXPECT_NE(over, observed);
  auto const outer = std::make_shared<keeping_observer>();
  over.observers().set_account(outer);
  auto* const ptr = over.allocate(default_stream, blocks(1), 256);
  EXPECT_EQ(outer->allocations.size(), 1U);
  EXPECT_TRUE(told->allocations.empty());
  over.deallocate(default_stream, ptr, blocks(1), 256);
  EXPECT_EQ(outer->frees.size(), 1U);
  EXPECT_TRUE(told->frees.empty());
}

}  // namespace
}  // namespace rmm_uvm::mr
