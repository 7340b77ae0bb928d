// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The decoder over the fuzzer's kept traces and changes of them; the sanitizers watch.
#include "../support/changed_inputs.hpp"

#include <rmm_uvm/monitor/trace_decoder.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

using tests::byte_string;

/** @brief Payloads of a kept trace: tests/fuzz/payload.py has how they are framed. */
[[nodiscard]] std::vector<byte_string> payloads_of(byte_string const& kept)
{
  std::vector<byte_string> found;
  auto place = 2 + std::size_t{tests::number_at<std::uint16_t>(kept, 0)};
  while (place + 3 <= kept.size()) {
    auto const first = kept.begin() + static_cast<std::ptrdiff_t>(place + 3);
    auto const bytes = tests::number_at<std::uint16_t>(kept, place);
    if (kept.end() - first < bytes) { break; }
    found.emplace_back(first, first + bytes);
    place += 3 + std::size_t{bytes};
  }
  return found;
}

/** @brief Reads one payload as either kind of chunk, and checks what the decoder promises. */
void read_payload(trace_decoder& decoder, byte_string const& payload)
{
  trace_chunk_events result;
  static_cast<void>(decoder.read_events(payload, result));
  ASSERT_LE(result.events.size() + result.marks.size(), payload.size());
  for (auto const& mark : result.marks) {
    ASSERT_TRUE(mark.kind == trace_mark_kind::stage_end || mark.name < result.names.size());
    ASSERT_TRUE(mark.kind != trace_mark_kind::stage_begin ||
                mark.thread_name < result.names.size());
  }
  std::vector<sample> samples;
  static_cast<void>(trace_decoder::read_samples(payload, samples));
  ASSERT_LE(samples.size(), payload.size());
}

TEST(TraceCorpus, ChangedPayloadsNeverBreakTheDecoder)
{
  std::size_t read = 0;
  for (auto const& kept : tests::kept_inputs("trace")) {
    trace_decoder decoder;  // one for a trace, whose chunks build on each other
    for (auto const& payload : payloads_of(kept)) {
      tests::read_changed(payload, 500, [&](byte_string const& data) {
        read_payload(decoder, data);
        ++read;
      });
    }
  }
  EXPECT_GT(read, 5'000U);
}

#ifdef __SANITIZE_ADDRESS__
TEST(TraceCorpus, ReaderThatGoesOneByteTooFarWouldBeSeen)  // the twin
{
  auto const too_far = [](byte_string const& data) {
    volatile std::uint8_t last = 0;
    for (std::size_t place = 0; place <= data.size(); ++place) {
      last = data.data()[place];
    }
    static_cast<void>(last);
  };
  auto const payload = payloads_of(tests::kept_inputs("trace").front()).front();
  EXPECT_DEATH(tests::read_changed(payload, 0, too_far), "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace rmm_uvm::monitor
