// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Small classes that the simulated device has beside the model, each alone.
#include <rmm_uvm/sim/migrating_threads.hpp>
#include <rmm_uvm/sim/node_gpu.hpp>
#include <rmm_uvm/sim/own_streams.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace rmm_uvm::sim {
namespace {

[[nodiscard]] std::shared_ptr<simulated_node> node_of(
  unsigned gpus, node_topology topology = node_topology::nvswitch)
{
  simulated_node_config config;
  config.gpus     = gpus;
  config.topology = topology;
  return std::make_shared<simulated_node>(config);
}

TEST(NodeGpu, TranslatesOrdinalsIntoNumbersOfTheNode)
{
  node_gpu const gpu{node_of(3), 1, 7};
  EXPECT_EQ(gpu.place(location::host()), uvm_model::host);
  EXPECT_EQ(gpu.place(location::device(7)), 1);
  EXPECT_EQ(gpu.place(location::device(2)), 2);
  for (auto const none : {1, 3, -2}) {
    EXPECT_EQ(gpu.place(location::device(none)), node_gpu::nowhere) << none;
    EXPECT_FALSE(gpu.reaches(gpu.place(location::device(none)))) << none;
    EXPECT_FALSE(gpu.neighbor(none).has_value()) << none;
  }
  EXPECT_FALSE(gpu.neighbor(7).has_value());
  EXPECT_EQ(gpu.neighbor(0), 0U);
}

TEST(NodeGpu, ReachesGpusThatTheNodeConnects)
{
  node_gpu const joined{node_of(2), 0, 0};
  EXPECT_TRUE(joined.reaches(uvm_model::host));
  EXPECT_TRUE(joined.reaches(0));
  EXPECT_TRUE(joined.reaches(1));
  node_gpu const apart{node_of(2, node_topology::pcie), 0, 0};
  EXPECT_TRUE(apart.reaches(0));
  EXPECT_FALSE(apart.reaches(1));
}

TEST(NodeGpu, TakesTurnsInALaneAndPublishesWhenAnOperationEnds)
{
  node_gpu const gpu{node_of(1), 0, 0};
  EXPECT_TRUE(gpu.has_the_node_alone());
  auto const model = gpu.enter(1);
  model->host_work(10);
  EXPECT_EQ(model->lane_ns(1), 10);
  EXPECT_EQ(model->lane_ns(0), 0);
  memory_range const range{va_block_bytes, va_block_bytes};
  model->add_range(range);
  EXPECT_TRUE(model->prefetch(range, 0, 0).ok());
  EXPECT_EQ(gpu.account().resident_bytes, 0U);
  EXPECT_EQ(gpu.finish(model, failed(status_code::driver_error, "own")).native_error, 0);
  EXPECT_EQ(gpu.account().resident_bytes, va_block_bytes);
}

TEST(OwnStreams, HaveOneLaneEachIfTheNodeHasLanes)
{
  own_streams streams{true};
  auto* const discards = streams.name(static_cast<own_stream_use>(0));
  auto* const last     = streams.name(static_cast<own_stream_use>(own_stream_count - 1));
  EXPECT_EQ(streams.lane_of(discards), 1U);
  EXPECT_EQ(streams.lane_of(last), own_stream_count);
  EXPECT_EQ(streams.lane_of(nullptr), 0U);
  own_streams without{false};
  EXPECT_EQ(without.lane_of(without.name(static_cast<own_stream_use>(1))), 0U);
}

TEST(MigratingThreads, HaveTheLaneOfWhoAskedOrOneOfTheirOwn)
{
  simulated_node node{{}};
  simulated_node::turn const model{node, 1};
  migrating_threads threads{1, true, true};
  EXPECT_EQ(threads.lane_for(model, {}, true), 0U);
  threads.migrate_beside(true);
  EXPECT_EQ(threads.lane_for(model, {}, true), simulated_node::beside_lane);
  threads.begin_together(model, 2);
  auto const first = simulated_node::together_lane(true);
  auto const lane  = threads.lane_for(model, {4096, 1}, true);
  EXPECT_EQ(lane, first);
  model->run_as(1, lane);
  model->host_work(10);
  EXPECT_EQ(threads.lane_for(model, {8192, 1}, true), first + 1);
  EXPECT_EQ(threads.lane_for(model, {4096, 1}, true), first);  // goes on with what it began
  threads.end_together(model);
  EXPECT_EQ(model->lane_ns(simulated_node::beside_lane), 10);
  EXPECT_EQ(threads.lane_for(model, {}, true), simulated_node::beside_lane);
}

}  // namespace
}  // namespace rmm_uvm::sim
