// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm {
namespace {

using sim::simulated_device;
using sim::simulated_device_config;
using tests::blocks;

constexpr std::size_t measured_bytes = blocks(32);

/** @brief A machine whose links carry a byte a nanosecond, each, and whose driver takes no time. */
[[nodiscard]] simulated_device_config plain_machine()
{
  simulated_device_config config;
  config.capacity_bytes = blocks(64);
  config.neighbors      = 1;
  auto& machine         = config.machine;
  for (auto* const ns : {&machine.copy_ns,
                         &machine.call_ns,
                         &machine.block_to_device_ns,
                         &machine.block_to_host_ns,
                         &machine.resident_block_ns,
                         &machine.populate_block_ns,
                         &machine.refill_block_ns,
                         &machine.deferred_call_ns,
                         &machine.prefetch_ramp_ns}) {
    *ns = 0;
  }
  machine.to_device_bytes_per_ns = 50;
  machine.to_host_bytes_per_ns   = 20;
  machine.peer_bytes_per_ns      = 200;
  return config;
}

[[nodiscard]] link_rates measured(simulated_device_config const& config, int neighbor)
{
  simulated_device device{config};
  link_rates rates;
  EXPECT_TRUE(device.measure_links(neighbor, measured_bytes, rates).ok());
  return rates;
}

TEST(LinkMeasurement, OnAMachineWithoutOverheadGivesTheRatesOfItsLinks)
{
  auto const rates = measured(plain_machine(), 1);
  EXPECT_NEAR(static_cast<double>(rates.to_device_bytes_per_second), 50e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(rates.to_host_bytes_per_second), 20e9, 0.2e9);
  EXPECT_NEAR(static_cast<double>(rates.to_neighbor_bytes_per_second), 200e9, 2e9);
  EXPECT_NEAR(static_cast<double>(rates.from_neighbor_bytes_per_second), 200e9, 2e9);
}

TEST(LinkMeasurement, PagesOfTheHostAreTakenBeforeTheRoundsThatCount)
{
  auto machine                 = plain_machine();
  machine.machine.host_page_ns = 1'000'000;  // by far the slowest part, once
  EXPECT_EQ(measured(machine, 1), measured(plain_machine(), 1));
}

TEST(LinkMeasurement, OnAModelledH200IsWithinAFactorOfTwoOfWhatWasMeasured)
{
  simulated_device_config config;  // the profile of an H200
  config.neighbors = 1;
  auto const rates = measured(config, 1);
  auto const near  = [](std::uint64_t rate, double expected) {
    return static_cast<double>(rate) > expected / 2 && static_cast<double>(rate) < expected * 2;
  };
  EXPECT_TRUE(near(rates.to_device_bytes_per_second, 51e9)) << rates.to_device_bytes_per_second;
  EXPECT_TRUE(near(rates.to_host_bytes_per_second, 24e9)) << rates.to_host_bytes_per_second;
  EXPECT_TRUE(near(rates.to_neighbor_bytes_per_second, 205e9))
    << rates.to_neighbor_bytes_per_second;
  EXPECT_TRUE(near(rates.from_neighbor_bytes_per_second, 205e9))
    << rates.from_neighbor_bytes_per_second;
}

TEST(LinkMeasurement, MovesNothingOfTheSimulatedDeviceItself)
{
  simulated_device device{plain_machine()};
  memory_range mine{0, blocks(64)};
  ASSERT_TRUE(device.allocate_managed(mine.bytes, mine.address).ok());
  ASSERT_TRUE(device.program().touch(mine, true).ok());
  auto const before = device.view().statistics();
  link_rates rates;
  ASSERT_TRUE(device.measure_links(1, measured_bytes, rates).ok());
  auto const after = device.view().statistics();
  EXPECT_EQ(after.modelled_ns, before.modelled_ns);
  EXPECT_EQ(after.device_to_host_bytes, before.device_to_host_bytes);
  EXPECT_EQ(after.managed_bytes, before.managed_bytes);
}

TEST(LinkMeasurement, HostOnlyLeavesTheNeighbourUnknown)
{
  auto config      = plain_machine();
  config.neighbors = 0;
  auto const rates = measured(config, location::host_id);
  EXPECT_GT(rates.to_device_bytes_per_second, 0U);
  EXPECT_EQ(rates.to_neighbor_bytes_per_second, 0U);
}

TEST(LinkMeasurement, DevicesThatAreNotThereAreRefused)
{
  simulated_device device{plain_machine()};
  link_rates rates;
  for (auto const id : {0, 2, 9}) {
    EXPECT_EQ(device.measure_links(id, measured_bytes, rates).code, status_code::invalid_value);
  }
  device.answers().plan("measure_links", {status_code::driver_error, 0, "injected"}, 0);
  EXPECT_EQ(device.measure_links(1, measured_bytes, rates).code, status_code::driver_error);
  EXPECT_EQ(rates, link_rates{});
}

}  // namespace
}  // namespace rmm_uvm
