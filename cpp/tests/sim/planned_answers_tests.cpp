// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/blocks.hpp"
#include "../support/simulated_calls.hpp"

#include <rmm_uvm/sim/planned_answers.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::capacity_of;
using tests::make_call;
using tests::take;

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

TEST(PlannedAnswers, NameTheCallInTheReasonOfARefusal)
{
  planned_answers answers;
  EXPECT_FALSE(answers.refusal_met_by("start").has_value());
  answers.plan("start", {status_code::not_supported, 0, "start"}, 0);
  auto const met = answers.refusal_met_by("start");
  ASSERT_TRUE(met.has_value());
  EXPECT_FALSE(met->available);
  EXPECT_EQ(met->reason, "start answered not supported");
}

TEST(PlannedAnswers, CaptureStateIsPerStream)
{
  simulated_device device{capacity_of(2)};
  auto* const other = reinterpret_cast<stream_handle>(std::uintptr_t{7});
  device.answers().set_capture_state(other, capture_state::capturing);
  EXPECT_EQ(device.capturing(other), capture_state::capturing);
  EXPECT_EQ(device.capturing(nullptr), capture_state::none);
}

class PlannedFailure : public testing::TestWithParam<char const*> {};

TEST_P(PlannedFailure, AnswersOnceAndChangesNothing)
{
  simulated_device device{capacity_of(4)};
  auto const range  = take(device, blocks(1));
  auto const before = device.view().statistics();
  device.answers().plan(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(make_call(device, GetParam(), range).native_error, 42);
  auto const after = device.view().statistics();
  EXPECT_EQ(after.managed_bytes, before.managed_bytes);
  EXPECT_EQ(after.device_bytes, before.device_bytes);
  EXPECT_EQ(after.resident_bytes, before.resident_bytes);
  EXPECT_EQ(after.modelled_ns, before.modelled_ns);
  EXPECT_TRUE(make_call(device, GetParam(), range).ok());
}

TEST_P(PlannedFailure, SkipsAsManyCallsAsAsked)
{
  simulated_device device{capacity_of(4)};
  std::array const ranges{
    take(device, blocks(1)), take(device, blocks(1)), take(device, blocks(1))};
  device.answers().plan(GetParam(), {status_code::driver_error, 42, "planned"}, 2);
  EXPECT_TRUE(make_call(device, GetParam(), ranges[0]).ok());
  EXPECT_TRUE(make_call(device, GetParam(), ranges[1]).ok());
  EXPECT_FALSE(make_call(device, GetParam(), ranges[2]).ok());
}

TEST_P(PlannedFailure, IsTakenBackUnlessItWasMet)
{
  simulated_device device{capacity_of(4)};
  std::array const ranges{take(device, blocks(1)), take(device, blocks(1))};
  device.answers().plan(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(make_call(device, GetParam(), ranges[0]).native_error, 42);
  EXPECT_EQ(device.answers().cancel(), 0);
  device.answers().plan(GetParam(), {status_code::driver_error, 42, "planned"}, 0);
  EXPECT_EQ(device.answers().cancel(), 1);
  EXPECT_TRUE(make_call(device, GetParam(), ranges[1]).ok());
}

INSTANTIATE_TEST_SUITE_P(Seam,
                         PlannedFailure,
                         testing::Values("memory",
                                         "allocate_managed",
                                         "allocate_device",
                                         "prefetch",
                                         "discard",
                                         "discard_and_prefetch",
                                         "touch",
                                         "cpu_touch",
                                         "synchronize",
                                         "free_managed"),
                         [](auto const& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace rmm_uvm::sim
