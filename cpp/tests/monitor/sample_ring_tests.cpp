// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/running_total.hpp>
#include <rmm_uvm/monitor/sample_ring.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using numbers = std::vector<std::uint64_t>;

void push(sample_ring& ring, std::uint64_t from, std::uint64_t to)
{
  for (auto time = from; time < to; ++time) {
    sample one;
    one.time_ns = time;
    ring.push(one);
  }
}

[[nodiscard]] numbers times(sample_ring const& ring, std::uint64_t since, std::size_t most = 100)
{
  std::vector<sample> found(most);
  auto const got = ring.read(since, found);
  numbers result;
  for (std::size_t i = 0; i < got.count; ++i) {
    EXPECT_EQ(found[i].time_ns, got.first_sequence + i);
    result.push_back(found[i].time_ns);
  }
  return result;
}

TEST(SampleRing, KeepsTheNewestInOrder)
{
  sample_ring ring{3};
  EXPECT_EQ(times(ring, 0), numbers{});
  push(ring, 0, 2);
  EXPECT_EQ(times(ring, 0), (numbers{0, 1}));
  for (std::uint64_t next = 2; next < 12; ++next) {
    push(ring, next, next + 1);
    EXPECT_EQ(times(ring, 0), (numbers{next - 2, next - 1, next}));
    EXPECT_EQ(times(ring, next), (numbers{next}));
    EXPECT_EQ(ring.first_sequence(), next - 2);
    EXPECT_EQ(ring.next_sequence(), next + 1);
  }
}

TEST(SampleRing, ReadsNoMoreThanFitsAndNothingFromTheFuture)
{
  sample_ring ring{4};
  push(ring, 0, 6);
  EXPECT_EQ(times(ring, 0, 3), (numbers{2, 3, 4}));
  EXPECT_EQ(times(ring, 4, 1), (numbers{4}));
  EXPECT_EQ(times(ring, 6), numbers{});
  EXPECT_EQ(times(ring, std::numeric_limits<std::uint64_t>::max()), numbers{});
  EXPECT_EQ(ring.count(0), 4U);
  EXPECT_EQ(ring.count(5), 1U);
  EXPECT_EQ(ring.count(7), 0U);
}

TEST(SampleRing, MoreThanThereIsMemoryForIsRefused)
{
  EXPECT_THROW(sample_ring{std::numeric_limits<std::size_t>::max()}, std::bad_alloc);
}

TEST(SampleRing, DayAtOneSampleASecondTakesLessThanTenMebibytes)
{
  EXPECT_LT(86'400 * sizeof(sample), std::size_t{10} << 20U);
}

TEST(RunningTotal, BeginsAtItsFirstReadingAndGoesOnAfterARestart)
{
  running_total total;
  EXPECT_EQ(total.add(100), 0U);
  EXPECT_EQ(total.add(130), 30U);
  EXPECT_EQ(total.add(5), 5U);  // restarted, and counted 5 since
  EXPECT_EQ(total.add(5), 0U);
  EXPECT_EQ(total.total(), 35U);
  total.begin_at(1'000);
  EXPECT_EQ(total.add(1'001), 1U);
  EXPECT_EQ(total.total(), 36U);
}

}  // namespace
}  // namespace rmm_uvm::monitor
