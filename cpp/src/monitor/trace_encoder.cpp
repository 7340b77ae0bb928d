// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "sample_fields.hpp"
#include "trace_numbers.hpp"

#include <rmm_uvm/monitor/trace_encoder.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace rmm_uvm::monitor {
namespace {

constexpr unsigned recent_bits = 14;  // 512 KiB: as many as one chunk can hold
constexpr std::size_t slack_bytes =
  2 * (trace_longest_text_bytes + longest_number_bytes) + 16 * longest_number_bytes;
constexpr std::uint64_t first_bad_value = std::uint64_t{1} << 60U;  // leaves spare bits to coding

[[nodiscard]] bool sane(trace_context const& context, memory_range range) noexcept
{
  return ((std::uint64_t{range.address} | range.bytes) & ~(first_bad_value - 1)) == 0 &&
         context.device_id >= -1 && context.device_id <= std::numeric_limits<std::int16_t>::max();
}

constexpr std::uint64_t not_written = ~std::uint64_t{0};  // of a name that has no index yet

[[nodiscard]] constexpr std::string_view cut(std::string_view name) noexcept
{
  return name.substr(0, trace_longest_text_bytes);
}

// Multiplication by 2^64 over the golden ratio: neighbours fall far apart.
[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t value, unsigned bits) noexcept
{
  return (value * 0x9e3779b97f4a7c15U) >> (64U - bits);
}

}  // namespace

trace_encoder::trace_encoder() : buffer_{make_buffer()}, recents_(std::size_t{1} << recent_bits)
{
  restart();
}

std::vector<std::uint8_t> trace_encoder::make_buffer()
{
  return std::vector<std::uint8_t>(trace_chunk_header_bytes + full_bytes + slack_bytes);
}

void trace_encoder::restart() noexcept
{
  cursor_ = buffer_.data() + trace_chunk_header_bytes;
  names_.clear();
  entered_       = false;
  context_count_ = 0;
  name_count_    = 0;
  tick_          = 0;
  next_address_  = 0;
  ++chunk_;
  chunk_allocations_ = allocations_;
}

void trace_encoder::take(std::vector<std::uint8_t>& buffer) noexcept
{
  buffer.resize(buffer_.size());
  buffer_.resize(trace_chunk_header_bytes + size());
  buffer_.swap(buffer);
  restart();
}

std::size_t trace_encoder::size() const noexcept
{
  return static_cast<std::size_t>(cursor_ - buffer_.data()) - trace_chunk_header_bytes;
}

trace_encoder::recent& trace_encoder::slot_of(std::uint64_t address) noexcept
{
  return recents_[spread(address, recent_bits)];
}

bool trace_encoder::holds(recent const& slot,
                          trace_context const& context,
                          memory_range range) const noexcept
{
  return slot.address == range.address && slot.device_id == context.device_id &&
         slot.number > chunk_allocations_;
}

void trace_encoder::put(std::uint64_t value) noexcept { cursor_ = put_number(cursor_, value); }

void trace_encoder::begin(std::uint64_t tick, trace_record kind) noexcept
{
  tick = std::clamp(tick, tick_, trace_latest_tick);
  put(((tick - tick_) << trace_record_bits) | static_cast<std::uint64_t>(kind));
  tick_ = tick;
}

void trace_encoder::begin(std::uint64_t tick,
                          trace_record kind,
                          trace_context const& context) noexcept
{
  if (!entered_ || current_ != context) { enter(tick, context); }
  begin(tick, kind);
}

void trace_encoder::enter(std::uint64_t tick, trace_context const& context) noexcept
{
  auto const key = context.stream ^ (std::uint64_t{context.thread} << 32U) ^
                   static_cast<std::uint32_t>(context.device_id);
  auto& known = contexts_[spread(key, 6)];
  begin(tick, trace_record::context);
  if (known.chunk == chunk_ && known.context == context) {
    put(known.index);
  } else {  // also when another one took its place: naming it again costs a few bytes
    known = {context, chunk_, context_count_++};
    put(known.index);
    put(zigzag(static_cast<std::uint64_t>(std::int64_t{context.device_id})));
    put(context.stream);
    put(context.thread);
  }
  current_ = context;
  entered_ = true;
}

void trace_encoder::put_range(memory_range range) noexcept
{
  put(shorten_address(range.address - next_address_));
  put(shorten(range.bytes, size_zero_bits));
  next_address_ = address_after(range);
}

bool trace_encoder::allocated(std::uint64_t tick,
                              trace_context const& context,
                              memory_range range) noexcept
{
  if (!sane(context, range)) { return false; }
  auto& slot        = slot_of(range.address);
  auto const number = allocations_ + 1;
  if (!holds(slot, context, range)) {
    begin(tick, trace_record::allocate, context);
    put_range(range);
  } else if (slot.bytes == range.bytes) {
    begin(tick, trace_record::allocate_again, context);
    put(number - slot.number);
  } else {
    begin(tick, trace_record::allocate_at, context);
    put(number - slot.number);
    put(shorten(range.bytes, size_zero_bits));
  }
  next_address_ = address_after(range);
  allocations_  = number;
  slot          = {range.address, range.bytes, number, context.device_id};
  return true;
}

bool trace_encoder::freed(std::uint64_t tick,
                          trace_context const& context,
                          memory_range range) noexcept
{
  if (!sane(context, range)) { return false; }
  auto const& slot = slot_of(range.address);
  if (holds(slot, context, range) && slot.bytes == range.bytes) {
    begin(tick, trace_record::free, context);
    put(allocations_ + 1 - slot.number);
  } else {
    begin(tick, trace_record::free_at, context);
    put_range(range);
  }
  return true;
}

bool trace_encoder::touched(std::uint64_t tick,
                            trace_context const& context,
                            memory_range range,
                            std::uint64_t flags) noexcept
{
  if (!sane(context, range)) { return false; }
  begin(tick, trace_record::touch, context);
  put(flags);
  put_range(range);
  return true;
}

void trace_encoder::mark(std::uint64_t tick,
                         trace_context const& context,
                         trace_mark_kind kind,
                         std::string_view name,
                         std::string_view second)
{
  // What can throw comes first: half a record would spoil the chunk.
  auto* const indices = kind == trace_mark_kind::stage_end ? nullptr : &index_of(name);
  auto* const seconds = kind == trace_mark_kind::stage_begin ? &index_of(second) : nullptr;
  begin(tick, trace_record::mark, context);
  put(static_cast<std::uint64_t>(kind));
  if (indices != nullptr) { put_name(*indices, name); }
  if (seconds != nullptr) { put_name(*seconds, second); }
}

std::uint64_t& trace_encoder::index_of(std::string_view name)
{
  return names_.try_emplace(std::string{cut(name)}, not_written).first->second;
}

void trace_encoder::put_name(std::uint64_t& index, std::string_view name) noexcept
{
  auto const is_new = index == not_written;
  if (is_new) { index = name_count_++; }
  put(index);
  if (!is_new) { return; }
  name = cut(name);
  put(name.size());
  std::memcpy(cursor_, name.data(), name.size());
  cursor_ += name.size();
}

std::vector<std::uint8_t> encode_samples(std::span<sample const> samples)
{
  std::vector<std::uint8_t> payload((samples.size() + 1) * (sample_fields.size() + 4) *
                                    longest_number_bytes);
  auto* cursor = put_number(payload.data(), samples.size());
  std::map<std::int32_t, sample> previous;
  for (auto const& row : samples) {
    auto& last         = previous[row.device_id];
    std::uint64_t mask = row.known == last.known ? 0 : known_changed;
    for (std::size_t field = 0; field < sample_fields.size(); ++field) {
      if (row.*sample_fields[field] != last.*sample_fields[field]) { mask |= field_changed(field); }
    }
    cursor = put_number(cursor, zigzag(static_cast<std::uint64_t>(std::int64_t{row.device_id})));
    cursor = put_number(cursor, mask);
    for (auto const field : sample_fields) {
      if (row.*field != last.*field) {
        cursor = put_number(cursor, zigzag(row.*field - last.*field));
      }
    }
    if (row.known != last.known) { cursor = put_number(cursor, row.known); }
    last = row;
  }
  payload.resize(static_cast<std::size_t>(cursor - payload.data()));
  return payload;
}

}  // namespace rmm_uvm::monitor
