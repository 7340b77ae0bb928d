// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/trace_file.hpp"

#include <rmm_uvm/monitor/trace_writer.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using tests::read_trace;
using tests::stepping_clock;
using tests::trace_file;

constexpr std::uintptr_t base = 0x7f00'0000'0000;
auto const stream             = reinterpret_cast<stream_handle>(std::uintptr_t{7});

TEST(TraceWriter, CrcIsTheOneOfZlib)
{
  std::string const text = "123456789";  // the check value of CRC-32 is published for this
  std::vector<std::uint8_t> const bytes{text.begin(), text.end()};
  EXPECT_EQ(trace_crc32(bytes), 0xcbf43926U);
  EXPECT_EQ(trace_crc32(std::span{bytes}.subspan(4), trace_crc32(std::span{bytes}.first(4))),
            0xcbf43926U);
  EXPECT_EQ(trace_crc32({}), 0U);
}

TEST(TraceWriter, EventsAreReadAsWritten)
{
  trace_file const file;
  trace_writer writer{file.for_writer(), "{}", 0, std::make_shared<stepping_clock>()};
  writer.allocated(0, {base, 1000}, stream);
  writer.touched(0, {base, 1000}, true, false);
  writer.freed(0, {base, 1000}, stream);
  writer.allocated(0, {base, 1000}, stream);
  writer.freed(0, {base + 7, 3}, nullptr);
  writer.close();

  read_trace const trace{file.bytes()};
  auto const& events = trace.contents.events;
  ASSERT_EQ(events.size(), 5U);
  EXPECT_TRUE(trace.ended);
  for (std::size_t index = 0; index < events.size(); ++index) {
    EXPECT_EQ(events[index].time_ns, 1000 * index);
    EXPECT_EQ(events[index].thread, static_cast<std::uint32_t>(::gettid()));
  }
  EXPECT_EQ(events[0].kind, trace_event_kind::allocate);
  EXPECT_EQ(events[1].kind, trace_event_kind::write);
  EXPECT_EQ(events[2].kind, trace_event_kind::free);
  EXPECT_EQ(events[2].id, events[0].id);
  EXPECT_EQ(events[3].id, 1);
  EXPECT_EQ(events[3].stream, 7U);
  EXPECT_EQ(events[4].address, base + 7);
  EXPECT_EQ(events[4].bytes, 3U);
  EXPECT_EQ(events[4].id, -1);
}

TEST(TraceWriter, RandomProgramOverManyChunksIsReadAsWritten)
{
  trace_file const file;
  trace_writer writer{file.for_writer(), "{}", 0, std::make_shared<stepping_clock>()};
  std::mt19937_64 random{20260};
  std::map<std::uintptr_t, std::size_t> live;
  std::vector<memory_range> expected;
  for (int step = 0; step < 100'000; ++step) {
    auto const address = base + random() % 5000 * 256;
    if (auto const it = live.find(address); it != live.end()) {
      expected.push_back({address, it->second});
      writer.freed(static_cast<int>(address % 3), expected.back(), stream);
      live.erase(it);
    } else {
      expected.push_back({address, random() % 3 == 0 ? 4096 : random() % (1U << 26U)});
      live.emplace(address, expected.back().bytes);
      writer.allocated(static_cast<int>(address % 3), expected.back(), stream);
    }
  }
  writer.close();

  read_trace const trace{file.bytes()};
  auto const& events = trace.contents.events;
  ASSERT_EQ(events.size(), expected.size());
  EXPECT_GT(trace.chunks, 5U);
  for (std::size_t index = 0; index < events.size(); ++index) {
    ASSERT_EQ(events[index].address, expected[index].address) << index;
    ASSERT_EQ(events[index].bytes, expected[index].bytes) << index;
    ASSERT_GE(events[index].id, 0) << index;
  }
}

TEST(TraceWriter, LongNamesAreCutAndNeverOverflow)
{
  trace_file const file;
  trace_writer writer{file.for_writer(), "{}", 0};
  for (int index = 0; index < 300; ++index) {
    writer.stage_begin(std::string(5000, 'a') + std::to_string(index),
                       std::string(3000, static_cast<char>('a' + index % 26)));
    writer.annotate(std::to_string(index) + std::string(2000, 'x'));
    writer.stage_end();
  }
  writer.close();
  read_trace const trace{file.bytes()};
  EXPECT_EQ(trace.contents.marks.size(), 900U);
  for (auto const& name : trace.contents.names) {
    EXPECT_EQ(name.size(), trace_longest_text_bytes);
  }
}

TEST(TraceWriter, SamplesOfManyChunksAreReadAsWritten)
{
  trace_file const file;
  trace_writer writer{file.for_writer(), "{}", 0};
  std::vector<sample> samples(3000);
  for (std::size_t index = 0; index < samples.size(); ++index) {
    samples[index].time_ns         = index;
    samples[index].footprint_bytes = index % 7 * ~std::uint64_t{0} / 7;
    samples[index].device_id       = static_cast<int>(index % 2);
    samples[index].known           = index % 3 == 0 ? ~0U : 0U;
  }
  writer.samples(samples);
  EXPECT_EQ(writer.counts().samples, samples.size());
  writer.close();
  read_trace const trace{file.bytes()};
  ASSERT_EQ(trace.samples.size(), samples.size());
  EXPECT_EQ(std::memcmp(trace.samples.data(), samples.data(), samples.size() * sizeof(sample)), 0);
}

TEST(TraceWriter, FullDiskStopsWritingAndIsTold)
{
  trace_writer writer{::open("/dev/full", O_WRONLY | O_CLOEXEC), "{}", 0};
  EXPECT_NE(writer.failure(), "");
  writer.allocated(0, {base, 8}, stream);
  writer.samples(std::vector<sample>(3));
  writer.flush();
  writer.close();
  EXPECT_EQ(writer.counts().written_bytes, 0U);
  EXPECT_EQ(writer.counts().allocations, 0U);
}

TEST(TraceWriter, ForkedChildWritesNothing)
{
  trace_file const file;
  trace_writer writer{file.for_writer(), "{}", 0};
  writer.allocated(0, {base, 8}, stream);
  auto const child = ::fork();
  if (child == 0) {
    writer.allocated(0, {base, 8}, stream);
    writer.close();
    ::_exit(writer.failure().empty() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  writer.close();
  EXPECT_EQ(read_trace{file.bytes()}.contents.events.size(), 1U);
}

}  // namespace
}  // namespace rmm_uvm::monitor
