// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What every resource of ours promises, whatever it is; a new one adds one line at the end.
#include "../support/simulated_chain.hpp"

#include <rmm_uvm/mr/bounded_resource.hpp>
#include <rmm_uvm/mr/observed_resource.hpp>

#include <rmm/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::default_stream;
using tests::simulated_chain;

constexpr std::size_t alignment = 256;

/** @brief How to make a resource over a chain. */
template <typename Resource>
Resource make(simulated_chain& chain);
template <>
managed_memory_resource make(simulated_chain& chain)
{
  return chain.managed;
}
template <>
uvm_resource_adaptor make(simulated_chain& chain)
{
  return chain.adaptor;
}
template <>
simulated_cuda_memory_resource make(simulated_chain& chain)
{
  return simulated_cuda_memory_resource{chain.device};
}
template <>
bounded_resource make(simulated_chain& chain)
{
  return bounded_resource{chain.adaptor, tests::blocks(simulated_chain::capacity_blocks)};
}
template <>
observed_resource make(simulated_chain& chain)
{
  return observed_resource{chain.managed, 0};
}

template <typename Resource>
class ResourceContract : public testing::Test {
 protected:
  /** @brief Managed and cudaMalloc bytes that the device has handed out. */
  [[nodiscard]] std::size_t taken_bytes() const
  {
    auto const statistics = chain.device->view().statistics();
    return statistics.managed_bytes + statistics.device_bytes;
  }

  simulated_chain chain;
  Resource resource{make<Resource>(chain)};
};

TYPED_TEST_SUITE_P(ResourceContract);

TYPED_TEST_P(ResourceContract, IsAResourceOfDeviceMemory)
{
  static_assert(cuda::mr::resource_with<TypeParam, cuda::mr::device_accessible>);
  static_assert(cuda::mr::synchronous_resource_with<TypeParam, cuda::mr::device_accessible>);
  cuda::mr::any_resource<cuda::mr::device_accessible> any{this->resource};
  auto* const ptr = any.allocate(default_stream, 1'000, alignment);
  EXPECT_NE(ptr, nullptr);
  any.deallocate(default_stream, ptr, 1'000, alignment);
  EXPECT_EQ(this->taken_bytes(), 0U);
}

TYPED_TEST_P(ResourceContract, NoBytesGiveNull)
{
  auto* const ptr = this->resource.allocate(default_stream, 0, alignment);
  EXPECT_EQ(ptr, nullptr);
  this->resource.deallocate(default_stream, ptr, 0, alignment);
  EXPECT_EQ(this->taken_bytes(), 0U);
}

TYPED_TEST_P(ResourceContract, PointersAreAlignedAndDistinct)
{
  std::set<void*> seen;
  std::vector<std::size_t> const sizes{1, 255, 256, 257, 4'096, std::size_t{1} << 21U};
  for (auto const bytes : sizes) {
    auto* const ptr = this->resource.allocate(default_stream, bytes, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ptr) % alignment, 0U);
    EXPECT_TRUE(seen.insert(ptr).second);
  }
}

TYPED_TEST_P(ResourceContract, SynchronousCallsWork)
{
  auto* const ptr = this->resource.allocate_sync(1'000, alignment);
  EXPECT_NE(ptr, nullptr);
  EXPECT_GT(this->taken_bytes(), 0U);
  this->resource.deallocate_sync(ptr, 1'000, alignment);
  EXPECT_EQ(this->taken_bytes(), 0U);
}

TYPED_TEST_P(ResourceContract, FarTooMuchIsOutOfMemoryAndTakesNothing)
{
  EXPECT_THROW(
    static_cast<void>(this->resource.allocate(default_stream, std::size_t{1} << 40U, alignment)),
    rmm::out_of_memory);
  EXPECT_EQ(this->taken_bytes(), 0U);
  auto* const ptr = this->resource.allocate(default_stream, 1'000, alignment);  // still works
  EXPECT_NE(ptr, nullptr);
}

TYPED_TEST_P(ResourceContract, SizesNearTheLargestAreOutOfMemoryAndTakeNothing)
{
  constexpr auto largest = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> const sizes{
    largest, largest - 254, largest - 255, largest - 256, largest / 2 + 1, largest / 2};
  for (auto const bytes : sizes) {
    EXPECT_THROW(static_cast<void>(this->resource.allocate(default_stream, bytes, alignment)),
                 rmm::out_of_memory)
      << bytes;
    EXPECT_THROW(static_cast<void>(this->resource.allocate_sync(bytes, alignment)),
                 rmm::out_of_memory)
      << bytes;
  }
  EXPECT_EQ(this->taken_bytes(), 0U);
}

TYPED_TEST_P(ResourceContract, AlignmentIsKeptOrRefused)
{
  std::vector<std::size_t> const none{0, 3, 255, 257, std::numeric_limits<std::size_t>::max()};
  for (auto const asked : none) {
    EXPECT_THROW(static_cast<void>(this->resource.allocate(default_stream, 1'000, asked)),
                 rmm::bad_alloc)
      << asked;
    EXPECT_THROW(static_cast<void>(this->resource.allocate_sync(1'000, asked)), rmm::bad_alloc)
      << asked;
  }
  EXPECT_EQ(this->taken_bytes(), 0U);
  std::size_t kept = 0;
  for (std::size_t asked = 1; asked != 0; asked *= 2) {
    try {
      auto* const ptr = this->resource.allocate(default_stream, 1'000, asked);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ptr) % asked, 0U);
      this->resource.deallocate(default_stream, ptr, 1'000, asked);
      kept = asked;
    } catch (rmm::bad_alloc const& error) {
      EXPECT_GT(asked, alignment);
      EXPECT_NE(std::string{error.what()}.find(std::to_string(asked)), std::string::npos);
    }
    EXPECT_EQ(this->taken_bytes(), 0U) << asked;
  }
  EXPECT_LT(kept, std::size_t{1} << 62U);  // some are refused: no memory lies there
}

TYPED_TEST_P(ResourceContract, CopiesShareTheirStateAndAreEqual)
{
  auto copy = this->resource;
  EXPECT_TRUE(copy == this->resource);
  auto* const ptr = this->resource.allocate(default_stream, 1'000, alignment);
  copy.deallocate(default_stream, ptr, 1'000, alignment);
  EXPECT_EQ(this->taken_bytes(), 0U);
}

TYPED_TEST_P(ResourceContract, ResourcesOfAnotherDeviceAreNotEqual)
{
  simulated_chain other;
  EXPECT_FALSE(make<TypeParam>(other) == this->resource);
}

REGISTER_TYPED_TEST_SUITE_P(ResourceContract,
                            IsAResourceOfDeviceMemory,
                            NoBytesGiveNull,
                            PointersAreAlignedAndDistinct,
                            SynchronousCallsWork,
                            FarTooMuchIsOutOfMemoryAndTakesNothing,
                            SizesNearTheLargestAreOutOfMemoryAndTakeNothing,
                            AlignmentIsKeptOrRefused,
                            CopiesShareTheirStateAndAreEqual,
                            ResourcesOfAnotherDeviceAreNotEqual);

using resources = testing::Types<managed_memory_resource,
                                 uvm_resource_adaptor,
                                 simulated_cuda_memory_resource,
                                 bounded_resource,
                                 observed_resource>;
INSTANTIATE_TYPED_TEST_SUITE_P(Ours, ResourceContract, resources);

}  // namespace
}  // namespace rmm_uvm::mr
