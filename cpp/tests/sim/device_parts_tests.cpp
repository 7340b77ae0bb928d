// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The classes that the simulated device has beside the model, each alone.
#include <rmm_uvm/sim/migrating_threads.hpp>
#include <rmm_uvm/sim/planned_answers.hpp>
#include <rmm_uvm/sim/simulated_node.hpp>

#include <gtest/gtest.h>

namespace rmm_uvm::sim {
namespace {

TEST(PlannedAnswers, AreMetOnceByTheCallAfterThoseThatAreSkipped)
{
  planned_answers answers;
  answers.plan("prefetch", {status_code::driver_error, 0, "prefetch"}, 1);
  EXPECT_FALSE(answers.met_by("discard").has_value());
  EXPECT_FALSE(answers.met_by("prefetch").has_value());
  auto const met = answers.met_by("prefetch");
  ASSERT_TRUE(met.has_value());
  EXPECT_EQ(met->code, status_code::driver_error);
  EXPECT_FALSE(answers.met_by("prefetch").has_value());
  answers.plan("advise", {}, 0);
  EXPECT_EQ(answers.cancel(), 1U);
  EXPECT_FALSE(answers.met_by("advise").has_value());
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
