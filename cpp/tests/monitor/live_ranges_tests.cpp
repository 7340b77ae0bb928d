// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What is live, and what contradicts itself, against a list that is searched from end to end.
#include <rmm_uvm/monitor/live_ranges.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

trace_event event(trace_event_kind kind,
                  std::uint64_t address,
                  std::uint64_t bytes,
                  std::int16_t device_id = 0)
{
  trace_event made;
  made.kind      = kind;
  made.address   = address;
  made.bytes     = bytes;
  made.device_id = device_id;
  return made;
}

constexpr auto allocate = trace_event_kind::allocate;
constexpr auto freed    = trace_event_kind::free;
constexpr auto highest  = std::numeric_limits<std::uint64_t>::max();

TEST(LiveRanges, GivesFreesAndTouchesTheIdOfTheirAllocation)
{
  std::vector events{event(allocate, 100, 10),
                     event(allocate, 200, 10),
                     event(trace_event_kind::write, 200, 4),
                     event(trace_event_kind::read, 204, 4),  // not its first byte
                     event(freed, 200, 10),
                     event(freed, 200, 10),  // twice
                     event(allocate, 200, 10),
                     event(trace_event_kind::allocate_failed, 200, 10)};
  live_ranges{}.follow(events);

  std::vector<std::int64_t> ids;
  for (auto const& one : events) {
    ids.push_back(one.id);
    EXPECT_EQ(one.flags, 0);
  }
  EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 1, 1, -1, 1, -1, 2, -1}));
}

TEST(LiveRanges, NotesOverlapsOnTheSameDeviceOnly)
{
  std::vector events{event(allocate, 100, 100),
                     event(allocate, 100, 100, 1),
                     event(allocate, 200, 100),  // after it
                     event(allocate, 0, 100),    // before it
                     event(allocate, 199, 1),    // in it
                     event(allocate, 350, 1),    // apart
                     event(allocate, 349, 2)};   // around the latest
  live_ranges{}.follow(events);

  std::vector<int> flags;
  for (auto const& one : events) {
    flags.push_back(one.flags);
  }
  EXPECT_EQ(flags, (std::vector<int>{0, 0, 0, 0, trace_event_overlaps, 0, trace_event_overlaps}));
}

TEST(LiveRanges, NotesAFreeOfAnotherSize)
{
  std::vector events{event(allocate, 100, 64), event(freed, 100, 65), event(freed, 100, 64)};
  live_ranges{}.follow(events);

  EXPECT_EQ(events[1].flags, trace_event_other_size);
  EXPECT_EQ(events[1].id, 0);
  EXPECT_EQ(events[2].id, -1);
}

TEST(LiveRanges, RangesOfNoBytesAreNeverLive)
{
  std::vector events{
    event(allocate, 100, 64), event(allocate, 100, 0), event(freed, 100, 0), event(freed, 100, 64)};
  live_ranges{}.follow(events);

  EXPECT_EQ(events[1].flags, 0);
  EXPECT_EQ(events[2].id, -1);
  EXPECT_EQ(events[3].id, 0);
}

TEST(LiveRanges, RangesToTheEndOfTheAddressSpaceAreFollowed)
{
  std::vector events{event(allocate, highest - 10, highest),
                     event(allocate, highest, 1),
                     event(freed, highest - 10, highest),
                     event(allocate, 5, 1)};
  live_ranges{}.follow(events);

  EXPECT_EQ(events[1].flags, trace_event_overlaps);
  EXPECT_EQ(events[2].id, 0);
  EXPECT_EQ(events[3].flags, 0);
}

TEST(LiveRanges, AnyProgramIsFollowedAsByALongSearch)
{
  struct range {
    std::uint64_t address, bytes;
    std::int16_t device_id;
    std::int64_t id;
  };
  constexpr std::array kinds{allocate, freed, trace_event_kind::cpu_write};
  std::mt19937 chance{20260};
  live_ranges live;
  std::vector<range> known;
  std::int64_t next_id = 0;
  for (int number = 0; number < 20'000; ++number) {
    std::vector one{event(
      kinds[chance() % 3], chance() % 64, chance() % 9, static_cast<std::int16_t>(chance() % 2))};
    auto const asked = one[0];
    live.follow(one);
    auto const here = std::find_if(known.begin(), known.end(), [&](auto const& it) {
      return it.address == asked.address && it.device_id == asked.device_id;
    });
    if (asked.kind == allocate) {
      auto const overlaps =
        asked.bytes > 0 && std::any_of(known.begin(), known.end(), [&](auto const& it) {
          return it.device_id == asked.device_id && it.address < asked.address + asked.bytes &&
                 asked.address < it.address + it.bytes;
        });
      ASSERT_EQ(one[0].flags != 0, overlaps) << number;
      ASSERT_EQ(one[0].id, next_id) << number;
      // Keeps to what is said of recordings that do not contradict themselves.
      if (overlaps) {
        live = {};
        known.clear();
        next_id = 0;
        continue;
      }
      if (asked.bytes > 0) {
        known.push_back({asked.address, asked.bytes, asked.device_id, next_id});
      }
      ++next_id;
    } else {
      auto const expected = asked.kind == freed && asked.bytes == 0;
      ASSERT_EQ(one[0].id, here == known.end() || expected ? -1 : here->id) << number;
      if (asked.kind == freed && here != known.end() && asked.bytes > 0) { known.erase(here); }
    }
  }
}

}  // namespace
}  // namespace rmm_uvm::monitor
