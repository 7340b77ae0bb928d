// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/replay/timeline.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace rmm_uvm::replay {
namespace {

/** @brief Feeds one event at each of `times`, with as many live bytes as the time has ns. */
template <typename Times>
[[nodiscard]] timeline drawn(std::uint64_t last_time_ns, Times const& times)
{
  timeline line{last_time_ns};
  line.add({}, 0, 0);
  for (auto const time : times) {
    if (line.due(time)) { line.add({}, 0, time); }
    line.note(time, time);
  }
  line.add({}, 0, last_time_ns);
  return line;
}

TEST(Timeline, NeverHasMoreThanAThousandPoints)
{
  std::vector<std::uint64_t> times(100'000);
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = i * 37;
  }
  auto const line = drawn(times.back(), times);
  EXPECT_EQ(line.points().size(), timeline::most_points);
  EXPECT_EQ(line.points().back().time_ns, times.back());
  for (std::size_t i = 1; i < line.points().size(); ++i) {
    EXPECT_GE(line.points()[i].time_ns, line.points()[i - 1].time_ns);
  }
}

TEST(Timeline, PointHoldsThePeakOfItsStep)
{
  timeline line{999'000};  // steps of 1 us and a little
  line.note(10, 100);
  line.note(20, 700);
  line.note(30, 200);
  ASSERT_TRUE(line.due(5'000));
  line.add({}, 200, 5'000);
  EXPECT_EQ(line.points().back().live_bytes, 700U);
  EXPECT_EQ(line.points().back().time_ns, 30U);
  line.add({}, 200, 5'000);  // what was live when the step began counts in it
  EXPECT_EQ(line.points().back().live_bytes, 200U);
}

TEST(Timeline, StepsWithoutEventsGiveNoPoint)
{
  auto const line = drawn(1'000'000'000, std::vector<std::uint64_t>{0, 1'000'000'000});
  EXPECT_EQ(line.points().size(), 3U);  // the beginning, and two steps
}

TEST(Timeline, TimesPastTheAnnouncedEndBelongToTheLastStep)
{
  auto const late = std::numeric_limits<std::uint64_t>::max();
  auto const line = drawn(0, std::vector<std::uint64_t>{0, 1, 2'000'000, late, late});
  EXPECT_LE(line.points().size(), timeline::most_points);
  EXPECT_EQ(line.points().back().time_ns, late);
}

TEST(Timeline, RecordingOfNoDurationHasOneStep)
{
  auto const line = drawn(0, std::vector<std::uint64_t>{0, 0, 0});
  EXPECT_EQ(line.points().size(), 2U);
}

}  // namespace
}  // namespace rmm_uvm::replay
