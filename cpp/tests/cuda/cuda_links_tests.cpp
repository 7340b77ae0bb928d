// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_cuda.hpp"

#include <rmm_uvm/cuda/cuda_driver.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace rmm_uvm::cuda {
namespace {

using tests::fake_cuda;

constexpr std::size_t two_pieces = 8 * va_block_bytes;
constexpr int rounds             = 6;  // one of them does not count

/** @brief Tells one load, or nothing. */
class fake_reader final : public neighbor_load_reader {
 public:
  explicit fake_reader(std::optional<double> kernels) : kernels_{kernels} {}
  [[nodiscard]] bool read(neighbor_load& load) noexcept override
  {
    if (kernels_) { load.kernel_fraction = kernels_; }
    return kernels_.has_value();
  }

 private:
  std::optional<double> kernels_;
};

class CudaLinks : public testing::Test {
 protected:
  fake_cuda fake;
  std::shared_ptr<cuda_driver> driver{
    std::static_pointer_cast<cuda_driver>(cuda_driver::open(fake_cuda::api(), 0, false).driver)};
  link_rates rates;

  /** @brief How often a call was made since the last time. */
  [[nodiscard]] static auto count(std::vector<std::string> const& log, std::string const& name)
  {
    return std::count_if(
      log.begin(), log.end(), [&](auto const& call) { return call.starts_with(name); });
  }
};

TEST_F(CudaLinks, AllFourWaysAreMeasuredInPiecesAndTheMemoryIsGivenBack)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  static_cast<void>(fake.take_log());
  ASSERT_TRUE(driver->measure_links(1, two_pieces, rates).ok());
  EXPECT_GT(rates.to_device_bytes_per_second, 0U);
  EXPECT_GT(rates.to_host_bytes_per_second, 0U);
  EXPECT_GT(rates.from_neighbor_bytes_per_second, 0U);
  EXPECT_GT(rates.to_neighbor_bytes_per_second, 0U);
  auto const log = fake.take_log();
  // To the host before the first round, then four ways a round, in two pieces each.
  EXPECT_EQ(count(log, "cuMemPrefetchAsync side"), (1 + 4 * rounds) * 2);
  EXPECT_EQ(count(log, "cuStreamSynchronize side"), 1 + 4 * rounds);
  EXPECT_EQ(count(log, "cuMemAllocManaged"), 1);
  EXPECT_EQ(count(log, "cuMemFree"), 1);
  EXPECT_FALSE(fake.called_without_context);
  EXPECT_TRUE(fake.contexts.empty());
}

TEST_F(CudaLinks, WithoutANeighbourOnlyTheHostIsMeasured)
{
  ASSERT_TRUE(driver->measure_links(location::host_id, two_pieces, rates).ok());
  EXPECT_GT(rates.to_device_bytes_per_second, 0U);
  EXPECT_GT(rates.to_host_bytes_per_second, 0U);
  EXPECT_EQ(rates.from_neighbor_bytes_per_second, 0U);
  EXPECT_EQ(rates.to_neighbor_bytes_per_second, 0U);
}

TEST_F(CudaLinks, NeighboursThatWereNotOpenedAndTooLittleMemoryAreRefused)
{
  static_cast<void>(fake.take_log());
  EXPECT_EQ(driver->measure_links(1, two_pieces, rates).code, status_code::invalid_value);
  EXPECT_EQ(driver->measure_links(0, two_pieces, rates).code, status_code::invalid_value);
  EXPECT_EQ(driver->measure_links(location::host_id, va_block_bytes - 1, rates).code,
            status_code::invalid_value);
  EXPECT_TRUE(fake.take_log().empty());
  EXPECT_EQ(rates, link_rates{});
}

TEST_F(CudaLinks, FailuresAreAnsweredAndLeaveNoMemoryBehind)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  for (auto const* call : {"cuStreamCreate",
                           "cuMemAllocManaged",
                           "cuMemPrefetchAsync",
                           "cuStreamSynchronize",
                           "cuMemFree"}) {
    static_cast<void>(fake.take_log());
    fake.answers = {{call, CUDA_ERROR_OUT_OF_MEMORY}};
    EXPECT_EQ(driver->measure_links(1, two_pieces, rates).code, status_code::out_of_memory) << call;
    auto const log = fake.take_log();
    bool const taken =
      count(log, "cuMemAllocManaged") > 0 && std::string{call} != "cuMemAllocManaged";
    EXPECT_EQ(count(log, "cuMemFree"), taken ? 1 : 0) << call;
    EXPECT_EQ(rates, link_rates{}) << call;
  }
}

TEST_F(CudaLinks, WithoutConcurrentManagedAccessNothingIsMeasured)
{
  fake.attributes = {};
  driver =
    std::static_pointer_cast<cuda_driver>(cuda_driver::open(fake_cuda::api(), 0, false).driver);
  EXPECT_EQ(driver->measure_links(location::host_id, two_pieces, rates).code,
            status_code::not_supported);
}

TEST_F(CudaLinks, LoadOfANeighbourIsReadByItsUuidAndTheReaderIsMadeOnce)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  int made = 0;
  driver->use_load_readers([&](std::array<std::uint8_t, 16> const& uuid) {
    EXPECT_EQ(uuid[0], 0x11);
    ++made;
    return std::make_shared<fake_reader>(0.25);
  });
  neighbor_load load;
  ASSERT_TRUE(driver->read_neighbor_load(1, load).ok());
  ASSERT_TRUE(driver->read_neighbor_load(1, load).ok());
  EXPECT_EQ(load.kernel_fraction, 0.25);
  EXPECT_EQ(made, 1);
}

TEST_F(CudaLinks, LoadOfTheDeviceItselfIsReadWithoutOpeningAnything)
{
  int made = 0;
  driver->use_load_readers([&](auto const&) {
    ++made;
    return std::make_shared<fake_reader>(0.5);
  });
  neighbor_load load;
  ASSERT_TRUE(driver->read_neighbor_load(0, load).ok());
  ASSERT_TRUE(driver->read_neighbor_load(0, load).ok());
  EXPECT_EQ(load.kernel_fraction, 0.5);
  EXPECT_EQ(made, 1);
}

TEST_F(CudaLinks, LoadThatNobodyTellsIsAStatus)
{
  neighbor_load load;
  EXPECT_EQ(driver->read_neighbor_load(1, load).code, status_code::invalid_value);
  ASSERT_TRUE(driver->open_neighbor(1).available);
  int made = 0;
  driver->use_load_readers([&](auto const&) {
    ++made;
    return nullptr;
  });
  EXPECT_EQ(driver->read_neighbor_load(1, load).code, status_code::not_supported);
  EXPECT_EQ(driver->read_neighbor_load(1, load).code, status_code::not_supported);
  EXPECT_EQ(made, 1);
  ASSERT_EQ(fake.device_count, 2);
}

TEST_F(CudaLinks, ReaderThatTellsNothingIsAStatus)
{
  ASSERT_TRUE(driver->open_neighbor(1).available);
  driver->use_load_readers([](auto const&) { return std::make_shared<fake_reader>(std::nullopt); });
  neighbor_load load;
  EXPECT_EQ(driver->read_neighbor_load(1, load).code, status_code::not_supported);
}

TEST_F(CudaLinks, WhatIsNotManagedIsReadByAReaderThatIsMadeOnce)
{
  int made  = 0;
  bool told = true;
  driver->use_unmanaged_reader([&](std::string const& uuid) {
    EXPECT_EQ(uuid.substr(0, 4), "GPU-");
    ++made;
    return [&](std::size_t& bytes) {
      bytes = 7;
      return told;
    };
  });
  std::size_t bytes = 0;
  ASSERT_TRUE(driver->unmanaged_bytes(bytes).ok());
  ASSERT_TRUE(driver->unmanaged_bytes(bytes).ok());
  EXPECT_EQ(bytes, 7U);
  EXPECT_EQ(made, 1);
  told = false;
  EXPECT_EQ(driver->unmanaged_bytes(bytes).code, status_code::driver_error);
  driver->use_unmanaged_reader([](std::string const&) { return unmanaged_reader{}; });
  EXPECT_EQ(driver->unmanaged_bytes(bytes).code, status_code::not_supported);
  EXPECT_EQ(driver->unmanaged_bytes(bytes).code, status_code::not_supported);
}

}  // namespace
}  // namespace rmm_uvm::cuda
