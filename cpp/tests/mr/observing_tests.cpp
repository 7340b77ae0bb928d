// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/simulated_chain.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;

/** @brief Counts what it is told of, and keeps the last range. */
class counting_observer final : public memory_observer {
 public:
  std::size_t allocations{0};
  std::size_t frees{0};
  memory_range last{};
  bool* destroyed{nullptr};

  ~counting_observer() override
  {
    if (destroyed != nullptr) { *destroyed = true; }
  }
  void allocated(int /*device_id*/, memory_range range, stream_handle /*stream*/) noexcept override
  {
    ++allocations;
    last = range;
  }
  void freed(int /*device_id*/, memory_range range, stream_handle /*stream*/) noexcept override
  {
    ++frees;
    last = range;
  }
  void touched(int /*device_id*/,
               memory_range /*range*/,
               bool /*write*/,
               bool /*by_cpu*/) noexcept override
  {
  }
};

TEST(Observing, AllocationsAndFreesAreTold)
{
  bool destroyed      = false;
  auto chain          = std::make_optional<tests::simulated_chain>();
  auto observer       = std::make_shared<counting_observer>();
  observer->destroyed = &destroyed;
  chain->adaptor.observe(observer);
  auto* const ptr = chain->adaptor.allocate(default_stream, blocks(1), 256);
  EXPECT_EQ(observer->allocations, 1U);
  EXPECT_EQ(observer->last, (memory_range{reinterpret_cast<std::uintptr_t>(ptr), blocks(1)}));
  chain->adaptor.deallocate(default_stream, ptr, blocks(1), 256);
  EXPECT_EQ(observer->frees, 1U);
  // Replaced, it hears no more, but lives on: a thread may be about to call it.
  chain->adaptor.observe(nullptr);
  observer.reset();
  EXPECT_FALSE(destroyed);
  chain->adaptor.deallocate(
    default_stream, chain->adaptor.allocate(default_stream, blocks(1), 256), blocks(1), 256);
  chain.reset();
  EXPECT_TRUE(destroyed);
}

TEST(Observing, WhatFailedOrWasRefusedIsNotTold)
{
  tests::simulated_chain chain;
  auto const observer = std::make_shared<counting_observer>();
  chain.adaptor.observe(observer);
  EXPECT_THROW(static_cast<void>(chain.adaptor.allocate(
                 default_stream, blocks(tests::simulated_chain::limit_blocks + 1), 256)),
               rmm::out_of_memory);
  int local = 0;
  EXPECT_FALSE(chain.adaptor.try_deallocate(default_stream, &local, 1));
  EXPECT_EQ(observer->allocations + observer->frees, 0U);
}

TEST(Levels, FollowTheAdaptorAndKeepNoneOfItsMemory)
{
  auto chain        = std::make_optional<tests::simulated_chain>();
  auto const device = chain->device;
  auto const levels = chain->adaptor.levels();
  auto* const ptr   = chain->adaptor.allocate(default_stream, blocks(2), 256);
  EXPECT_EQ(levels->levels().footprint_bytes, blocks(2));
  EXPECT_EQ(levels->levels().managed_bytes, blocks(2));
  EXPECT_EQ(levels->levels().prefetched_bytes, 0U);  // a new slab is empty
  EXPECT_EQ(chain->managed.levels()->levels().footprint_bytes, blocks(2));
  chain->adaptor.deallocate(default_stream, ptr, blocks(2), 256);
  EXPECT_EQ(levels->levels().footprint_bytes, 0U);
  chain.reset();
  EXPECT_EQ(levels->levels().managed_bytes, 0U);
  EXPECT_EQ(device->view().statistics().managed_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::mr
