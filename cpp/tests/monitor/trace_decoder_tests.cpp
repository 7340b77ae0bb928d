// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What the decoder makes of bytes that nobody wrote; the sanitizers watch.
#include <rmm_uvm/monitor/trace_decoder.hpp>
#include <rmm_uvm/monitor/trace_encoder.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using bytes = std::vector<std::uint8_t>;

/** @brief A payload with one of every record. */
bytes good_payload()
{
  constexpr std::uintptr_t base = 0x7f00'0000'0000;
  trace_context const context{0, 1, 7};
  trace_encoder encoder;
  EXPECT_TRUE(encoder.allocated(5, context, {base, 1000}));
  EXPECT_TRUE(encoder.allocated(6, context, {base + 1024, 4096}));
  EXPECT_TRUE(encoder.freed(9, context, {base, 1000}));
  EXPECT_TRUE(encoder.allocated(10, context, {base, 1000}));
  EXPECT_TRUE(encoder.freed(9, {1, 1, 7}, {base, 1000}));
  EXPECT_TRUE(encoder.allocated(11, context, {base, 2000}));
  EXPECT_TRUE(encoder.touched(12, context, {base, 2000}, trace_touch_write));
  encoder.mark(13, context, trace_mark_kind::stage_begin, "name", "thread");
  encoder.mark(14, context, trace_mark_kind::annotation, "name");
  encoder.mark(15, context, trace_mark_kind::stage_end);
  encoder.mark(16, context, trace_mark_kind::kernel, "name");
  auto buffer = trace_encoder::make_buffer();
  encoder.take(buffer);
  return {buffer.begin() + trace_chunk_header_bytes, buffer.end()};
}

/** @brief Copied, so that a byte too far is one outside of the heap block. */
char const* read(bytes const& payload, trace_chunk_events& result)
{
  bytes const exact(payload.begin(), payload.end());
  return trace_decoder{}.read_events(exact, result);
}

TEST(TraceDecoder, ReadsOneOfEveryRecord)
{
  trace_chunk_events result;
  EXPECT_EQ(read(good_payload(), result), nullptr);
  EXPECT_EQ(result.events.size(), 7U);
  EXPECT_EQ(result.marks.size(), 4U);
  EXPECT_EQ(result.marks.back().kind, trace_mark_kind::kernel);
  EXPECT_EQ(result.names, (std::vector<std::string>{"name", "thread"}));
  EXPECT_EQ(result.events[4].time_ns, 10'000U);  // a time that goes back is the latest
}

TEST(TraceDecoder, CutOffAnywhereKeepsWhatCameBefore)
{
  auto const payload = good_payload();
  std::size_t most   = 0;
  for (std::size_t length = 0; length < payload.size(); ++length) {
    trace_chunk_events result;
    auto const* const wrong =
      read({payload.begin(), payload.begin() + static_cast<long>(length)}, result);
    EXPECT_TRUE(wrong == nullptr || std::string{wrong} == "a record is cut off");
    EXPECT_GE(result.events.size(), most);
    most = result.events.size();
  }
}

TEST(TraceDecoder, ChangedAndRandomBytesNeverBreakIt)
{
  std::mt19937_64 random{20260};
  auto const payload = good_payload();
  for (int round = 0; round < 20'000; ++round) {
    auto changed = payload;
    if (round % 2 == 0) {
      for (auto& byte : changed) {
        byte = static_cast<std::uint8_t>(random());
      }
      changed[0] = static_cast<std::uint8_t>(trace_record::context);
      changed[1] = 0;
    } else {
      for (int change = 0; change < 3; ++change) {
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      }
    }
    trace_chunk_events result;
    (void)read(changed, result);
    for (auto const& mark : result.marks) {
      EXPECT_TRUE(mark.kind == trace_mark_kind::stage_end || mark.name < result.names.size());
    }
    std::vector<sample> samples;
    (void)trace_decoder::read_samples(bytes(changed.begin(), changed.end()), samples);
  }
}

TEST(TraceDecoder, HugeCountOfSamplesTakesNoMemory)
{
  bytes const huge{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  std::vector<sample> samples;
  EXPECT_STREQ(trace_decoder::read_samples(huge, samples), "a record is cut off");
  EXPECT_EQ(samples.capacity(), 0U);
}

TEST(TraceDecoder, NumberOfMoreThan64BitsIsRefused)
{
  bytes const long_number{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
  trace_chunk_events result;
  EXPECT_STREQ(read(long_number, result), "a record is cut off");
}

TEST(TraceEncoder, ImpossibleMemoryIsRefusedAndWritesNothing)
{
  trace_encoder encoder;
  EXPECT_FALSE(encoder.allocated(0, {0, 1, 0}, {std::uintptr_t{1} << 60U, 8}));
  EXPECT_FALSE(encoder.freed(0, {0, 1, 0}, {4096, std::size_t{1} << 60U}));
  EXPECT_FALSE(encoder.touched(0, {1 << 15, 1, 0}, {4096, 8}, 0));
  EXPECT_TRUE(encoder.empty());
}

}  // namespace
}  // namespace rmm_uvm::monitor
