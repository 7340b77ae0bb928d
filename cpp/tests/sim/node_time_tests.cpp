// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Time on a node: clocks of programs, and links that they share.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/link_engine.hpp>
#include <rmm_uvm/sim/uvm_model.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::block_range;
using tests::blocks;

constexpr std::size_t most  = 64;  ///< blocks of a program
constexpr std::size_t piece = 16;  ///< blocks of a call: the link is what it waits for

/** @brief Programs that begin with all of their memory on their own GPU, or on the host. */
struct node {
  explicit node(unsigned gpus, std::vector<unsigned> links = {}, bool on_host = false)
    : model{of(gpus, std::move(links))}
  {
    for (unsigned program = 0; program < gpus; ++program) {
      model.run_as(program);
      model.add_range(range(program));
      if (on_host) {
        EXPECT_TRUE(model.cpu_touch(range(program), true).ok());
      } else {
        EXPECT_TRUE(model.prefetch(range(program), static_cast<int>(program), 0).ok());
      }
      model.synchronize();
    }
    for (unsigned program = 0; program < gpus; ++program) {
      model.run_as(program);
      model.wait_until(begin_ns);
    }
  }
  [[nodiscard]] static model_config of(unsigned gpus, std::vector<unsigned> links)
  {
    model_config config;
    config.device_bytes = blocks(most * 2);
    config.gpus         = gpus;
    config.programs     = gpus;
    config.links        = std::move(links);
    return config;
  }
  [[nodiscard]] static memory_range range(unsigned program)
  {
    return {(std::uintptr_t{program} + 1) << 40U, blocks(most)};
  }
  /** @brief Moves pieces, each program's turn after the other's; returns their times. */
  struct move {
    unsigned program;
    int where;
  };
  [[nodiscard]] std::vector<double> run(std::vector<move> const& moves)
  {
    for (std::size_t first = 0; first < most; first += piece) {
      for (auto const& [program, where] : moves) {
        model.run_as(program);
        EXPECT_TRUE(
          model.prefetch(block_range(range(program).address, first, piece), where, 0).ok());
      }
    }
    std::vector<double> times;
    for (auto const& each : moves) {
      model.run_as(each.program);
      model.synchronize();
      times.push_back(model.now_ns() - begin_ns);
    }
    return times;
  }

  static constexpr double begin_ns = 1e9;  ///< all are done with their beginnings
  uvm_model model;
};

TEST(NodeTime, ProgramsOnLinksOfTheirOwnDoNotDelayEachOther)
{
  node alone{2, {}, true};
  auto const expected = alone.run({{0, 0}});
  node both{2, {}, true};
  auto const found = both.run({{0, 0}, {1, 1}});
  EXPECT_EQ(found[0], expected[0]);
  EXPECT_EQ(found[1], expected[0]);
}

TEST(NodeTime, SharedLinkToTheHostCarriesNoMoreThanItsRate)
{
  node alone{2, {0, 0}, true};
  auto const expected = alone.run({{0, 0}})[0];
  node both{2, {0, 0}, true};
  auto const found = both.run({{0, 0}, {1, 1}});
  EXPECT_GT(std::min(found[0], found[1]), 1.2 * expected);
  auto const least_ns =
    static_cast<double>(blocks(2 * most)) / machine_profile{}.to_device_bytes_per_ns;
  EXPECT_GT(std::max(found[0], found[1]), least_ns);
  EXPECT_LT(std::max(found[0], found[1]), 1.2 * least_ns);
}

TEST(NodeTime, SenderToTwoGpusSharesItsWayOut)
{
  // Program 0 sends its memory from GPU 0 to 1, while program 2 fetches its own back from there.
  node alone{3};
  auto const expected = alone.run({{0, 1}})[0];
  node both{3};
  both.model.run_as(2);
  ASSERT_TRUE(both.model.prefetch(node::range(2), 0, 0).ok());
  both.model.synchronize();
  ASSERT_LT(both.model.now_ns(), 2 * node::begin_ns);
  both.model.run_as(0);
  both.model.wait_until(both.model.latest_ns());
  auto const begin_ns = both.model.now_ns();
  auto const found    = both.run({{0, 1}, {2, 2}});
  EXPECT_GT(found[0] - (begin_ns - node::begin_ns), 1.5 * expected);
}

TEST(NodeTime, ReceiverOfTwoGpusSharesItsWayIn)
{
  node alone{3};
  auto const expected = alone.run({{0, 2}})[0];
  node both{3};
  for (auto const found : both.run({{0, 2}, {1, 2}})) {
    EXPECT_GT(found, 1.5 * expected);
  }
}

TEST(NodeTime, PairsOfGpusDoNotDelayEachOther)
{
  node alone{4};
  auto const expected = alone.run({{0, 1}});
  node both{4};
  auto const found = both.run({{0, 1}, {2, 3}});
  EXPECT_EQ(found[0], expected[0]);
}

TEST(NodeTime, BothWaysBetweenTwoGpusAreFree)
{
  node alone{2};
  auto const expected = alone.run({{0, 1}})[0];
  node both{2};
  EXPECT_EQ(both.run({{0, 1}, {1, 0}})[0], expected);
}

TEST(NodeTime, KernelsOfANeighbourWaitForALinkThatOthersUse)
{
  auto const nanoseconds = [](bool busy) {
    node given{2, {0, 0}, true};
    if (busy) {
      given.model.run_as(1);
      EXPECT_TRUE(given.model.prefetch(node::range(1), 1, 0).ok());
    }
    given.model.run_as(0);
    kernel_access const access{node::range(0), {}, false};
    EXPECT_TRUE(given.model.launch({.accesses = {&access, 1}, .gpu = 0}).ok());
    given.model.synchronize();
    return given.model.now_ns();
  };
  EXPECT_GT(nanoseconds(true), nanoseconds(false));
}

TEST(NodeTime, EqualCallsGiveEqualTimes)
{
  node first{4, {0, 0, 1, 1}, true};
  node second{4, {0, 0, 1, 1}, true};
  std::vector<node::move> const moves{{0, 0}, {1, 1}, {2, 3}, {3, 2}};
  EXPECT_EQ(first.run(moves), second.run(moves));
}

TEST(LinkEngine, WorkOfAnotherProgramFillsAPause)
{
  link_engine engine{2};
  engine.work(0, 0, 10);
  engine.work(0, 20, 30);
  EXPECT_EQ(engine.pause(1, 0, 10), 10);
  EXPECT_EQ(engine.pause(1, 0, 11), 30);
  EXPECT_EQ(engine.pause(1, 5, 5), 10);
  EXPECT_EQ(engine.pause(0, 0, 5), 30);  // its own work is not overtaken
  engine.work(1, 10, 20);
  EXPECT_EQ(engine.pause(1, 0, 1), 30);
  EXPECT_EQ(engine.busy_ns(5, 40), 25);
}

TEST(LinkEngine, NothingBeginsBeforeWhatIsForgotten)
{
  link_engine engine{2};
  for (int number = 0; number < 10000; ++number) {
    engine.work(0, number * 10.0, number * 10.0 + 1);
  }
  EXPECT_GT(engine.pause(1, 0, 5), 10000);
  EXPECT_LT(engine.pause(1, 0, 5), 100000);
}

}  // namespace
}  // namespace rmm_uvm::sim
