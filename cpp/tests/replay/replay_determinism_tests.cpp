// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The same recording gives the same result, however it is cut into pieces.
#include "recording.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <tuple>

namespace rmm_uvm::replay {
namespace {

using tests::blocks;
using tests::make_device;
using tests::make_replayer;
using tests::recording;

/** @brief A program over 16 places of 8 blocks; sizes of a quarter block and more. */
[[nodiscard]] recording random_program(unsigned seed, std::size_t steps)
{
  std::mt19937 random{seed};
  std::array<double, 16> live{};
  recording what;
  for (std::size_t step = 0; step < steps; ++step) {
    auto const place = random() % live.size();
    auto const first = static_cast<double>(place * 8);
    what.stage(static_cast<std::uint16_t>(random() % 3)).pause(random() % 1000);
    if (live[place] == 0.0) {
      live[place] = static_cast<double>(1 + random() % 32) / 4.0;
      what.allocate(first, live[place]).write(first, live[place]);
    } else if (random() % 2 == 0) {
      what.read(first, live[place]);
    } else {
      what.free(first, live[place]);
      live[place] = 0.0;
    }
  }
  return what;
}

[[nodiscard]] std::unique_ptr<replayer> run(recording const& what,
                                            std::size_t chunk,
                                            replay_settings settings)
{
  settings.stage_count  = 3;
  settings.last_time_ns = what.events.back().time_ns;
  auto result           = make_replayer(make_device(40), 128, settings);
  std::span<replay_event const> left{what.events};
  while (!left.empty()) {
    auto const now = std::min(chunk, left.size());
    result->feed(left.first(now));
    left = left.subspan(now);
  }
  result->finish();
  return result;
}

[[nodiscard]] auto as_tuple(sim::simulated_statistics const& s)
{
  return std::tuple{s.host_to_device_bytes,
                    s.device_to_host_bytes,
                    s.evicted_bytes,
                    s.dropped_bytes,
                    s.gpu_fault_groups,
                    s.modelled_ns,
                    s.peak_resident_bytes,
                    s.host_page_bytes};
}

[[nodiscard]] auto as_tuple(stage_totals const& s)
{
  return std::tuple{
    s.migration_ns, s.to_device_bytes, s.to_host_bytes, s.evicted_bytes, s.peak_live_bytes};
}

[[nodiscard]] auto as_tuple(timeline_point const& p)
{
  return std::tuple{p.time_ns, p.live_bytes, p.resident_bytes, p.to_device_bytes, p.to_host_bytes};
}

void expect_same(replayer const& one, replayer const& other)
{
  EXPECT_EQ(as_tuple(one.statistics()), as_tuple(other.statistics()));
  auto const same = [](auto const& a, auto const& b) { return as_tuple(a) == as_tuple(b); };
  EXPECT_TRUE(std::equal(
    one.stages().begin(), one.stages().end(), other.stages().begin(), other.stages().end(), same));
  EXPECT_TRUE(std::equal(
    one.points().begin(), one.points().end(), other.points().begin(), other.points().end(), same));
}

TEST(ReplayDeterminism, AnyChunkSizeGivesTheSameResult)
{
  for (unsigned seed = 0; seed < 4; ++seed) {
    auto const what = random_program(seed, 3000);
    for (bool const discard_dead : {false, true}) {
      replay_settings const settings{.discard_dead = discard_dead};
      auto const whole = run(what, what.events.size(), settings);
      EXPECT_GT(whole->statistics().evicted_bytes, 0U);
      for (std::size_t const chunk : {1U, 7U, 1000U}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", chunk " << chunk);
        expect_same(*whole, *run(what, chunk, settings));
      }
    }
  }
}

TEST(ReplayDeterminism, AnotherProgramGivesAnotherResult)
{
  replay_settings const settings;
  auto const one   = run(random_program(1, 3000), 1000, settings);
  auto const other = run(random_program(2, 3000), 1000, settings);
  EXPECT_NE(as_tuple(one->statistics()), as_tuple(other->statistics()));
}

}  // namespace
}  // namespace rmm_uvm::replay
