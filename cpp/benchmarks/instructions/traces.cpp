// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// A trace: what an event costs the program that is recorded, and its reader.
#include "paths.hpp"

#include <rmm_uvm/monitor/trace_decoder.hpp>
#include <rmm_uvm/monitor/trace_encoder.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace rmm_uvm::benchmarks {
namespace {

/** @brief What is told of a program: two events a turn, on two streams, over 64 addresses. */
void tell(monitor::trace_encoder& encoder, std::size_t turn)
{
  monitor::trace_context const context{0, 1, turn / 64 % 2};
  memory_range const range{first_address + turn % 64 * mib, mib};
  require(encoder.allocated(1000 * turn, context, range));
  require(encoder.freed(1000 * turn + 500, context, range));
}

/** @brief The payload of one full chunk. */
[[nodiscard]] std::vector<std::uint8_t> full_chunk(std::size_t& events)
{
  monitor::trace_encoder encoder;
  auto buffer = monitor::trace_encoder::make_buffer();
  for (std::size_t turn = 0; !encoder.full(); ++turn, events += 2) {
    tell(encoder, turn);
  }
  encoder.take(buffer);
  buffer.erase(buffer.begin(), buffer.begin() + monitor::trace_chunk_header_bytes);
  return buffer;
}

[[gnu::noipa]] void hot_path_trace_encode(monitor::trace_encoder& encoder,
                                          std::vector<std::uint8_t>& buffer,
                                          std::size_t rounds)
{
  for (std::size_t turn = 0; turn < rounds / 2; ++turn) {
    tell(encoder, turn);
    if (encoder.full()) { encoder.take(buffer); }
  }
}

[[gnu::noipa]] void hot_path_trace_decode(std::span<std::uint8_t const> payload, std::size_t rounds)
{
  monitor::trace_decoder decoder;
  monitor::trace_chunk_events read;
  require(decoder.read_events(payload, read) == nullptr);
  require(read.events.size() == rounds);
}

}  // namespace

void count_traces()
{
  monitor::trace_encoder encoder;
  auto buffer = monitor::trace_encoder::make_buffer();
  count("trace_encode", hot_path_trace_encode, 100'000, encoder, buffer);

  std::size_t events = 0;
  auto const payload = full_chunk(events);
  count("trace_decode", hot_path_trace_decode, events, payload);
}

}  // namespace rmm_uvm::benchmarks
