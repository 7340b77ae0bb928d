// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Dead blocks dropped on a nearly full device: what it saves, and that nobody meets them discarded.
#include "recording.hpp"

#include <gtest/gtest.h>

namespace rmm_uvm::replay {
namespace {

using tests::blocks;
using tests::make_device;
using tests::make_replayer;
using tests::recording;

[[nodiscard]] std::unique_ptr<replayer> run(recording const& what,
                                            std::size_t capacity,
                                            std::size_t slab,
                                            replay_settings const& settings)
{
  auto result = make_replayer(make_device(capacity), slab, settings);
  result->feed(what.events);
  result->finish();
  return result;
}

/** @brief Fills 60 blocks, frees them, and fills 60 others. */
[[nodiscard]] recording one_after_the_other()
{
  recording what;
  what.allocate(0, 60).write(0, 60).free(0, 60).allocate(60, 60).write(60, 60).read(60, 60);
  return what;
}

class DiscardDead : public testing::TestWithParam<prefetch_mode> {
 protected:
  [[nodiscard]] static replay_settings dropping()
  {
    return {.mode = GetParam(), .discard_dead = true};
  }
};

TEST_P(DiscardDead, EvictingDeadBlocksCopiesNothing)
{
  auto const dropped = run(one_after_the_other(), 64, 128, dropping());
  auto const kept    = run(one_after_the_other(), 64, 128, {.mode = GetParam()});
  EXPECT_EQ(dropped->statistics().device_to_host_bytes, 0U);
  EXPECT_GT(kept->statistics().device_to_host_bytes, 0U);
}

TEST_P(DiscardDead, ReusedBlocksAreMadeUsableBeforeTheyAreTouched)
{
  recording what;
  what.allocate(0, 60).write(0, 60).free(0, 60);
  what.allocate(0.5, 30.25).write(0.5, 30.25);
  auto const replayed = run(what, 64, 128, dropping());
  auto const faults_before =
    run(recording{}.allocate(0, 60).write(0, 60).free(0, 60), 64, 128, dropping())
      ->statistics()
      .gpu_fault_groups;
  EXPECT_EQ(replayed->prefetches().discarded_bytes % va_block_bytes, 0U);
  EXPECT_GE(replayed->prefetches().discarded_bytes, blocks(60));
  EXPECT_EQ(replayed->statistics().gpu_fault_groups, faults_before);
}

TEST_P(DiscardDead, BlockWithALiveNeighbourIsKept)
{
  recording what;
  what.allocate(0, 30.5).allocate(30.5, 29.5).write(0, 60).free(0, 30.5);
  auto const replayed = run(what, 64, 128, dropping());
  EXPECT_EQ(replayed->prefetches().discarded_bytes, blocks(30));
}

TEST_P(DiscardDead, NothingIsDroppedWhileThereIsRoom)
{
  auto const replayed = run(one_after_the_other(), 256, 128, dropping());
  EXPECT_EQ(replayed->prefetches().discarded_bytes, 0U);
}

// Without prefetches, since that of the slab would fill the device at the beginning.
TEST(DiscardDeadBlocks, BlocksThatDiedEarlierAreDroppedWhenItGetsTight)
{
  replay_settings const settings{.mode = prefetch_mode::never, .discard_dead = true};
  recording what;
  what.allocate(0, 20).write(0, 20).free(0, 20);  // room enough
  EXPECT_EQ(run(what, 64, 62, settings)->prefetches().discarded_bytes, 0U);
  what.allocate(20, 42).write(20, 42).free(20, 1);  // now the device is nearly full
  EXPECT_EQ(run(what, 64, 62, settings)->prefetches().discarded_bytes, blocks(21));
}

TEST_P(DiscardDead, DeviceWithoutDiscardKeepsThem)
{
  sim::simulated_device_config config;
  config.capacity_bytes = blocks(64);
  config.discard        = false;
  auto replayer = make_replayer(std::make_shared<sim::simulated_device>(config), 128, dropping());
  replayer->feed(one_after_the_other().events);
  replayer->finish();
  EXPECT_EQ(replayer->prefetches().discarded_bytes, 0U);
  EXPECT_EQ(replayer->prefetches().failed_calls, 0U);
  EXPECT_GT(replayer->statistics().device_to_host_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes,
                         DiscardDead,
                         testing::Values(prefetch_mode::automatic,
                                         prefetch_mode::always,
                                         prefetch_mode::never));

}  // namespace
}  // namespace rmm_uvm::replay
