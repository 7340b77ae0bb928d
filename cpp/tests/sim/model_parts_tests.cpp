// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The classes that the model is made of, each with no more of the others than it needs.
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/sim/block_table.hpp>
#include <rmm_uvm/sim/copy_waits.hpp>
#include <rmm_uvm/sim/fault_service.hpp>
#include <rmm_uvm/sim/managed_ranges.hpp>
#include <rmm_uvm/sim/model_account.hpp>
#include <rmm_uvm/sim/page_mover.hpp>
#include <rmm_uvm/sim/program_clocks.hpp>
#include <rmm_uvm/sim/timeline.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {
namespace {

constexpr std::uintptr_t base = std::uintptr_t{1} << 40U;

/** @brief Two programs, and GPUs of two blocks' memory. */
[[nodiscard]] model_config two_programs(unsigned lanes)
{
  model_config config;
  config.device_bytes = 2 * va_block_bytes;
  config.gpus         = 2;
  config.programs     = 2;
  config.lanes        = lanes;
  return config;
}

/** @brief All that moves pages, and nothing that asks for it; block 0 and others of program 1. */
struct moving {
  explicit moving(unsigned lanes = 1)
    : config{two_programs(lanes)}, clocks{config.programs, config.lanes}
  {
    static_cast<void>(blocks.take(4 * pages_per_block, base, 1));
    mover.resize(blocks.size());
    clocks.run_as(1, 0);
    time.run_as(clocks.lane_number());
    time.begin(0);
  }

  status to_gpu(std::uint32_t block)
  {
    auto const pages = blocks.whole(block);
    return mover.to_device(block, 0, pages, pages, migration_cause::user, false);
  }

  model_config config;
  program_clocks clocks;
  timeline time{config.machine, {0, 1}, config.programs* config.lanes};
  block_table blocks{config.gpus};
  model_account account{config, blocks};
  copy_waits waits{config, time, clocks};
  page_mover mover{config, time, clocks, blocks, account, waits};
};

TEST(ModelConfig, NamesThePlacesAndWhoReachesWhom)
{
  auto config = two_programs(1);
  EXPECT_TRUE(config.is_place(host_place));
  EXPECT_TRUE(config.is_place(1));
  EXPECT_FALSE(config.is_place(2));
  EXPECT_FALSE(config.is_place(-2));
  config.machine.peer_bytes_per_ns = 1;
  EXPECT_TRUE(config.reaches(0, 1));
  config.peer_groups = {0, 1};
  EXPECT_FALSE(config.reaches(0, 1));
}

TEST(ProgramClocks, GoForwardForTheLaneWhoseTurnItIsAlone)
{
  program_clocks clocks{2, 3};
  clocks.run_as(1, 2);
  EXPECT_EQ(clocks.program(), 1U);
  EXPECT_EQ(clocks.lane(), 2U);
  EXPECT_EQ(clocks.lane_number(), 5U);
  clocks.spend(10);
  clocks.wait_until(4);
  EXPECT_EQ(clocks.now_ns(), 10);
  EXPECT_EQ(clocks.lane_ns(0), 0);
  clocks.run_as(0, 0);
  EXPECT_EQ(clocks.now_ns(), 0);
  EXPECT_EQ(clocks.latest_ns(), 10);
}

TEST(ProgramClocks, WaitForAStreamOrForEverything)
{
  program_clocks clocks{1, 1};
  EXPECT_EQ(clocks.stream_ns(7), 0);
  clocks.issue(7, 20);
  clocks.issue(8, 30);
  clocks.wait_for(9);  // on which nothing was issued
  EXPECT_EQ(clocks.now_ns(), 0);
  clocks.wait_for(7);
  EXPECT_EQ(clocks.now_ns(), 20);
  clocks.wait_for_all();
  EXPECT_EQ(clocks.now_ns(), 30);
  clocks.finish(40);
  EXPECT_EQ(clocks.now_ns(), 40);
}

TEST(ManagedRanges, AreThoseOfOneProgramAndDoNotOverlap)
{
  managed_ranges ranges;
  EXPECT_FALSE(ranges.is_free({base + 1, 1}));
  EXPECT_FALSE(ranges.is_free({base, 0}));
  ASSERT_TRUE(ranges.is_free({base, va_block_bytes + 1}));
  ranges.add(base, {va_block_bytes + 1, 5, 2, 1});
  EXPECT_FALSE(ranges.is_free({base + va_block_bytes, 1}));
  EXPECT_TRUE(ranges.is_free({base + 2 * va_block_bytes, 1}));
  EXPECT_FALSE(ranges.range_of(base, 0).has_value());
  ASSERT_TRUE(ranges.range_of(base + 7, 1).has_value());
  EXPECT_EQ(ranges.range_of(base + 7, 1)->address, base);
  EXPECT_FALSE(ranges.beginning_at(base + 7, 1).has_value());
  ASSERT_TRUE(ranges.beginning_at(base, 1).has_value());
  EXPECT_EQ(ranges.beginning_at(base, 1)->first_block, 5U);
  ranges.remove(base);
  EXPECT_TRUE(ranges.is_free({base, 1}));
}

TEST(ManagedRanges, FindPagesThatARangeTouchesOrHasToItself)
{
  managed_ranges ranges;
  ranges.add(base, {3 * page_bytes + 1, 5, 1, 0});
  auto const touched = ranges.find({base + 1, page_bytes}, false, 0);
  ASSERT_TRUE(touched.has_value());
  EXPECT_EQ(touched->base_block, 5U);
  EXPECT_EQ(touched->first_page, 0U);
  EXPECT_EQ(touched->last_page, 2U);
  auto const inside = ranges.find({base + 1, 3 * page_bytes}, true, 0);
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(inside->first_page, 1U);
  EXPECT_EQ(inside->last_page, 4U);  // the last page ends with the range
  EXPECT_FALSE(ranges.find({base, 4 * page_bytes}, false, 0).has_value());
  EXPECT_FALSE(ranges.find({base, 1}, false, 1).has_value());
}

TEST(ModelAccount, KeepsProgramsAndGpusApart)
{
  auto const config = two_programs(1);
  block_table blocks{config.gpus};
  auto const block = blocks.take(pages_per_block, base, 1);
  model_account account{config, blocks};
  account.count(block, &model_counters::cpu_faults, 3);
  account.add_resident_bytes(block, 1, 100);
  account.add_resident_bytes(block, 1, std::size_t{0} - 40);
  account.add_device_bytes(0, 1, 7);
  EXPECT_EQ(account.counters().cpu_faults, 3U);
  EXPECT_EQ(account.counters(0).cpu_faults, 0U);
  EXPECT_EQ(account.counters(1).cpu_faults, 3U);
  EXPECT_EQ(account.levels(1).resident_bytes, 60U);
  EXPECT_EQ(account.levels(1).peak_resident_bytes, 100U);
  EXPECT_EQ(account.levels(1).device_bytes, 7U);
  EXPECT_EQ(account.levels(1, 0).resident_bytes, 0U);
  EXPECT_EQ(account.levels(1, 1).resident_bytes, 60U);
  EXPECT_EQ(account.levels(0).resident_bytes, 0U);
}

TEST(ModelAccount, TellsWhatMovedAndNothingOfNothing)
{
  struct recorder final : migration_listener {
    void moved(unsigned program, direction, migration_cause, memory_range pages) noexcept override
    {
      programs.push_back(program);
      bytes += pages.bytes;
    }
    std::vector<unsigned> programs;
    std::size_t bytes{0};
  } heard;
  moving parts;
  parts.account.listen(&heard);
  parts.account.report(direction::to_host, migration_cause::eviction, 0, 0);
  EXPECT_TRUE(heard.programs.empty());
  parts.account.report(direction::to_host, migration_cause::eviction, 0, 5);
  EXPECT_EQ(heard.programs, std::vector<unsigned>{1});
  EXPECT_EQ(heard.bytes, 5U);
  EXPECT_EQ(parts.account.counters(1).to_host_bytes, 5U);
}

TEST(CopyWaits, NoteWhenWhatComesIsThere)
{
  for (auto const lanes : {1U, 2U}) {
    moving parts{lanes};
    parts.time.copy(direction::to_device, 0, va_block_bytes, 1);
    parts.waits.note_arrival(0);
    EXPECT_GT(parts.waits.arrival_ns(0), 0);
    EXPECT_EQ(parts.waits.arrival_ns(0), parts.time.copied_ns());
    EXPECT_EQ(parts.waits.arrival_ns(1), 0);
    parts.waits.forget(0);
    EXPECT_EQ(parts.waits.arrival_ns(0), 0);
  }
}

TEST(PageMover, EvictsTheOldestForWhatComes)
{
  moving parts;
  for (std::uint32_t block = 0; block < 3; ++block) {
    ASSERT_TRUE(parts.to_gpu(block).ok());
  }
  EXPECT_EQ(parts.mover.free_bytes(0), 0U);
  EXPECT_EQ(parts.mover.free_bytes(1), parts.config.device_bytes);
  EXPECT_TRUE(parts.blocks.on_gpu(0, 0).none());
  EXPECT_EQ(parts.mover.resident_anywhere(0).bytes(), va_block_bytes);  // on the host
  EXPECT_EQ(parts.account.counters(1).evicted_blocks, 1U);
  parts.mover.forget(2);
  EXPECT_EQ(parts.mover.free_bytes(0), va_block_bytes);
}

TEST(PageMover, TakesChunksWhoseContentsWereDiscardedBeforeOlderOnes)
{
  moving parts;
  ASSERT_TRUE(parts.to_gpu(0).ok());
  ASSERT_TRUE(parts.to_gpu(1).ok());
  parts.mover.drop_chunks(1);
  ASSERT_TRUE(parts.mover.make_room(0, va_block_bytes).ok());
  EXPECT_TRUE(parts.blocks.all_on_gpu(0, 0));
  EXPECT_FALSE(parts.blocks.all_on_gpu(1, 0));
  EXPECT_EQ(parts.mover.make_room(0, 3 * va_block_bytes).code, status_code::out_of_memory);
}

TEST(FaultService, BringsWhatIsMissingAndReadsTheRestWhereItBelongs)
{
  moving parts;
  fault_service faults{
    parts.config, parts.time, parts.clocks, parts.blocks, parts.account, parts.mover};
  auto const whole = parts.blocks.whole(0);
  page_set remote;
  EXPECT_TRUE(faults.missing_for(0, 0, whole, false, remote) == whole);
  std::vector<page_faults> waiting{{0, page_set::range(0, 1), false}};
  ASSERT_TRUE(faults.serve_batch(waiting, 0).ok());
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(parts.account.counters(1).fault_batches, 1U);
  EXPECT_FALSE(faults.missing_for(0, 0, whole, false, remote).test(0));
  EXPECT_TRUE(remote.none());
  parts.blocks.set_policy(1, {host_place, 0, false});
  ASSERT_TRUE(faults.serve_cpu(1, whole, true).ok());
  EXPECT_TRUE(faults.missing_for(1, 0, whole, false, remote).none());
  EXPECT_TRUE(remote == whole);
}

}  // namespace
}  // namespace rmm_uvm::sim
