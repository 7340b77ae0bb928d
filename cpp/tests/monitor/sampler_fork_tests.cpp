// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/forked.hpp"
#include "../support/watching.hpp"

#include <rmm_uvm/monitor/sampler.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using namespace std::chrono_literals;

using tests::in_child;

class SamplerFork : public testing::Test {
 protected:
  SamplerFork()
  {
    watched = std::make_unique<sampler>(std::vector{tests::watching(0, device)},
                                        sampler_settings{10'000, 1'000, 30s});
    watched->start();
  }

  [[nodiscard]] bool dead_here()
  {
    std::vector<sample> found(watched->count(0));
    static_cast<void>(watched->read(0, found));
    bool const dead = !watched->running() && !watched->sample_now() &&
                      !watched->wait(watched->next_sequence(), 10s);
    static_cast<void>(watched->set_levels(0, nullptr));
    watched->stop();
    try {
      watched->start();
      return false;
    } catch (std::logic_error const&) {
      watched.reset();
      return dead;
    }
  }

  std::shared_ptr<sim::simulated_device> device =
    std::make_shared<sim::simulated_device>(sim::simulated_device_config{va_block_bytes * 8});
  std::unique_ptr<sampler> watched;
};

TEST_F(SamplerFork, ChildHasNoSamplerAndDoesNotHang)
{
  for (int round = 0; round < 30; ++round) {
    EXPECT_TRUE(in_child([this] { return dead_here(); }));
  }
  EXPECT_TRUE(watched->wait(watched->next_sequence(), 30s));
}

TEST_F(SamplerFork, ChildFindsSamplesAndNoLockTaken)
{
  ASSERT_TRUE(watched->wait(3, 30s));
  for (int round = 0; round < 30; ++round) {
    EXPECT_TRUE(in_child([this] {
      device_memory memory;
      bool const free  = device->memory(memory).ok() && watched->count(0) > 3;
      bool const again = in_child([this] { return dead_here(); });  // the child forks in its turn
      return free && again && dead_here();
    }));
  }
  EXPECT_TRUE(watched->wait(watched->next_sequence(), 30s));
}

TEST_F(SamplerFork, ChildMayHaveASamplerOfItsOwn)
{
  EXPECT_TRUE(in_child([this] {
    sampler own{std::vector{tests::watching(0, device)}, sampler_settings{10'000, 1'000, 30s}};
    own.start();
    return own.wait(own.next_sequence() + 3, 30s) && in_child([&own] { return !own.running(); }) &&
           own.wait(own.next_sequence(), 30s);
  }));
}

}  // namespace
}  // namespace rmm_uvm::monitor
