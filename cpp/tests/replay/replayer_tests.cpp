// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What a replay does on the device, stage by stage; and what it refuses.
#include "recording.hpp"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <string>

namespace rmm_uvm::replay {
namespace {

using tests::blocks;
using tests::make_device;
using tests::make_replayer;
using tests::recorded_slab;
using tests::recording;

class Replay : public testing::Test {
 protected:
  void run(std::size_t capacity,
           std::size_t slab,
           recording const& what,
           replay_settings settings = {})
  {
    replayer = make_replayer(make_device(capacity, host_bytes), slab, settings);
    replayer->feed(what.events);
    replayer->finish();
    counted = replayer->statistics();
  }
  /** @brief What a recording of one event is refused with. */
  [[nodiscard]] std::string refusal(recording const& what)
  {
    try {
      run(64, 32, what);
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return {};
  }

  std::size_t host_bytes{~std::size_t{0}};
  std::unique_ptr<replay::replayer> replayer;
  sim::simulated_statistics counted;
};

/** @brief Two allocations of 40 blocks each, written and read in turns. */
[[nodiscard]] recording two_turns()
{
  recording what;
  what.allocate(0, 40).write(0, 40).allocate(40, 40).write(40, 40);
  what.read(0, 40).read(40, 40).free(0, 40).free(40, 40);
  return what;
}

TEST_F(Replay, DataThatFitMoveNothing)
{
  run(128, 80, two_turns());
  EXPECT_EQ(counted.host_to_device_bytes, 0U);
  EXPECT_EQ(counted.device_to_host_bytes, 0U);
  EXPECT_EQ(counted.evicted_bytes, 0U);
  EXPECT_EQ(counted.gpu_fault_groups, 0U);  // the slab was prefetched
  EXPECT_EQ(replayer->peak_live_bytes(), blocks(80));
  EXPECT_EQ(replayer->replayed(), 8U);
}

TEST_F(Replay, DataThatDoNotFitAreEvicted)
{
  run(64, 80, two_turns());
  EXPECT_GE(counted.evicted_bytes, blocks(16));
  EXPECT_GT(counted.host_to_device_bytes, 0U);
  EXPECT_LE(counted.peak_resident_bytes, blocks(64));
}

TEST_F(Replay, WithoutPrefetchesPagesComeByFault)
{
  run(128, 80, two_turns(), {.mode = prefetch_mode::never});
  EXPECT_GT(counted.gpu_fault_groups, 0U);
  EXPECT_EQ(counted.host_to_device_bytes, 0U);
  EXPECT_EQ(replayer->prefetches().slab_prefetched_bytes, 0U);
}

TEST_F(Replay, ModeIsTheOneOfTheChain)
{
  run(128, 80, two_turns(), {.mode = prefetch_mode::always});
  EXPECT_EQ(replayer->prefetches().prefetched_bytes, blocks(80));
  run(128, 80, two_turns(), {.mode = prefetch_mode::automatic});
  EXPECT_EQ(replayer->prefetches().prefetched_bytes, 0U);
}

TEST_F(Replay, StagesAddUpToTheWhole)
{
  recording what;
  what.allocate(0, 40).write(0, 40);
  what.stage(1).allocate(40, 40).write(40, 40);
  what.stage(2).read(0, 40);
  what.stage(1).read(40, 40).free(40, 40);
  run(64, 80, what, {.stage_count = 3});
  stage_totals sum;
  for (auto const& one : replayer->stages()) {
    sum.migration_ns += one.migration_ns;
    sum.to_device_bytes += one.to_device_bytes;
    sum.to_host_bytes += one.to_host_bytes;
    sum.evicted_bytes += one.evicted_bytes;
  }
  EXPECT_EQ(sum.to_device_bytes, counted.host_to_device_bytes);
  EXPECT_EQ(sum.to_host_bytes, counted.device_to_host_bytes);
  EXPECT_EQ(sum.evicted_bytes, counted.evicted_bytes);
  EXPECT_NEAR(sum.migration_ns, static_cast<double>(counted.modelled_ns), 10.0);
  EXPECT_GT(replayer->stages()[1].evicted_bytes, 0U);
  EXPECT_GT(replayer->stages()[2].to_device_bytes, 0U);
  EXPECT_EQ(replayer->stages()[0].peak_live_bytes, blocks(40));
  EXPECT_EQ(replayer->stages()[1].peak_live_bytes, blocks(80));
  EXPECT_EQ(replayer->stages()[2].peak_live_bytes, blocks(80));  // live when it began
}

TEST_F(Replay, TouchByTheCpuMovesPagesToTheHost)
{
  recording what;
  what.allocate(0, 4).write(0, 4).cpu_read(0, 2);
  run(64, 8, what);
  EXPECT_EQ(counted.device_to_host_bytes, blocks(2));
  EXPECT_EQ(counted.evicted_bytes, 0U);
}

TEST_F(Replay, ReplayEndsWhereNeitherDeviceNorHostHaveMemory)
{
  host_bytes = blocks(4);
  recording what;
  what.allocate(0, 60).write(0, 60).stage(1).allocate(60, 30).write(60, 30).read(0, 60);
  run(64, 96, what, {.stage_count = 2});
  auto const ended = replayer->out_of_memory();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->record, 3U);
  EXPECT_EQ(ended->stage, 1U);
  EXPECT_EQ(ended->bytes, blocks(30));
  EXPECT_EQ(replayer->replayed(), 3U);
  replayer->feed(what.events);  // nothing goes on
  EXPECT_EQ(replayer->replayed(), 3U);
}

TEST_F(Replay, EnoughHostMemoryDoesNotEndIt)
{
  host_bytes = blocks(40);
  recording what;
  what.allocate(0, 60).write(0, 60).allocate(60, 30).write(60, 30);
  run(64, 96, what);
  EXPECT_FALSE(replayer->out_of_memory().has_value());
  EXPECT_EQ(replayer->replayed(), 4U);
}

TEST_F(Replay, EventOutsideAllSlabsIsRefused)
{
  EXPECT_NE(refusal(recording{}.allocate(0, 1).allocate(31.5, 1)).find("event 1 "),
            std::string::npos);
  EXPECT_NE(refusal(recording{}.read(40, 1)).find("lies in no slab"), std::string::npos);
  EXPECT_EQ(refusal(recording{}.allocate(31, 1)), "");
}

TEST_F(Replay, EventOfAnUnknownKindIsRefused)
{
  auto what           = recording{}.allocate(0, 1);
  what.events[0].kind = static_cast<event_kind>(3);
  EXPECT_NE(refusal(what).find("unknown kind"), std::string::npos);
}

TEST_F(Replay, EventOfAnUnknownStageIsRefused)
{
  EXPECT_NE(refusal(recording{}.stage(1).allocate(0, 1)).find("stage"), std::string::npos);
}

TEST_F(Replay, AllocationOverLiveBytesIsRefused)
{
  EXPECT_NE(refusal(recording{}.allocate(0, 2).allocate(1, 2)).find("are allocated"),
            std::string::npos);
}

TEST_F(Replay, FreeOfWhatIsNotLiveIsRefused)
{
  EXPECT_NE(refusal(recording{}.free(0, 1)).find("not allocated"), std::string::npos);
}

TEST_F(Replay, WithoutAStageIsRefused)
{
  EXPECT_THROW(run(64, 32, {}, {.stage_count = 0}), std::invalid_argument);
}

TEST_F(Replay, TimelineBeginsWithNothingAndEndsWithTheRecording)
{
  recording what;
  what.pause(1'000).allocate(0, 4).write(0, 4).pause(5'000).free(0, 4);
  run(64, 8, what, {.last_time_ns = 6'000});
  auto const& points = replayer->points();
  ASSERT_EQ(points.size(), 4U);  // 0, an empty first step, 1 us, 6 us
  EXPECT_EQ(points.front().time_ns, 0U);
  EXPECT_EQ(points.front().live_bytes, 0U);
  EXPECT_EQ(points.front().resident_bytes, 0U);
  EXPECT_EQ(points[2].resident_bytes, blocks(8));  // the slab, once something lies in it
  EXPECT_EQ(points[2].live_bytes, blocks(4));
  EXPECT_EQ(points.back().time_ns, 6'000U);
}

TEST_F(Replay, TakesASlabWhenTheFirstEventLiesInIt)
{
  // The upper slab comes first, and fills the device; the lower one is taken when it is used.
  recording what;
  what.allocate(8, 4).write(8, 4).allocate(0, 4).write(0, 4);
  std::vector<memory_range> const slabs{{recorded_slab, blocks(4)},
                                        {recorded_slab + blocks(8), blocks(4)}};
  replay_settings settings;
  settings.mode = prefetch_mode::always;
  class replayer taken{make_device(4), slabs, settings};
  taken.feed(what.events);
  taken.finish();
  EXPECT_EQ(taken.statistics().evicted_blocks, 4U);  // of the upper slab, for the lower one
  EXPECT_EQ(taken.statistics().host_to_device_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::replay
