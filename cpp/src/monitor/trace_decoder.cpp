// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "sample_fields.hpp"
#include "trace_numbers.hpp"

#include <rmm_uvm/monitor/trace_decoder.hpp>

#include <limits>

namespace rmm_uvm::monitor {
namespace {

constexpr char const* fine       = nullptr;
constexpr char const* cut_off    = "a record is cut off";
constexpr char const* no_context = "a record comes before its context";

}  // namespace

/** @brief The state within one chunk; each function reads one record and returns what is wrong. */
class trace_decoder::chunk_reader {
 public:
  chunk_reader(std::span<std::uint8_t const> payload, trace_chunk_events& result)
    : bytes_{payload}, result_{result}
  {
  }

  [[nodiscard]] char const* read()
  {
    while (!bytes_.at_end()) {
      if (auto const* const wrong = read_record()) { return wrong; }
    }
    return fine;
  }

 private:
  struct allocation {
    std::uint64_t address;
    std::uint64_t bytes;
    std::int16_t device_id;
  };
  struct context {
    std::uint64_t stream;
    std::uint32_t thread;
    std::int16_t device_id;
  };

  [[nodiscard]] char const* read_record()
  {
    std::uint64_t first = 0;
    if (!bytes_.number(first)) { return cut_off; }
    auto const ticks = first >> trace_record_bits;
    if (ticks > trace_latest_tick - tick_) { return "a time is past all bounds"; }
    tick_ += ticks;
    auto const kind = static_cast<trace_record>(first & ((1U << trace_record_bits) - 1U));
    switch (kind) {
      case trace_record::context: return read_context();
      case trace_record::mark: return entered_ ? read_mark() : no_context;
      case trace_record::touch: return entered_ ? read_touch() : no_context;
      case trace_record::free:
      case trace_record::free_at: return entered_ ? read_free(kind) : no_context;
      case trace_record::allocate:
      case trace_record::allocate_at:
      case trace_record::allocate_again: break;
    }
    return entered_ ? read_allocation(kind) : no_context;
  }

  [[nodiscard]] char const* read_context()
  {
    std::uint64_t index = 0;
    if (!bytes_.number(index)) { return cut_off; }
    if (index > contexts_.size()) { return "a context was never described"; }
    if (index == contexts_.size()) {
      std::uint64_t device = 0;
      std::uint64_t thread = 0;
      context described{};
      if (!bytes_.number(device) || !bytes_.number(described.stream) || !bytes_.number(thread)) {
        return cut_off;
      }
      auto const device_id = static_cast<std::int64_t>(unzigzag(device));
      if (device_id < -1 || device_id > std::numeric_limits<std::int16_t>::max() ||
          thread > std::numeric_limits<std::uint32_t>::max()) {
        return "a device or thread has an impossible number";
      }
      described.device_id = static_cast<std::int16_t>(device_id);
      described.thread    = static_cast<std::uint32_t>(thread);
      contexts_.push_back(described);
    }
    current_ = contexts_[index];
    entered_ = true;
    return fine;
  }

  [[nodiscard]] bool read_bytes(std::uint64_t& value)
  {
    if (!bytes_.number(value)) { return false; }
    value = lengthen(value, size_zero_bits);
    return true;
  }

  [[nodiscard]] bool read_range(std::uint64_t& address, std::uint64_t& bytes)
  {
    std::uint64_t difference = 0;
    if (!bytes_.number(difference) || !read_bytes(bytes)) { return false; }
    address = next_address_ + lengthen_address(difference);
    expect_after(address, bytes);
    return true;
  }

  void expect_after(std::uint64_t address, std::uint64_t bytes)
  {
    next_address_ = address_after({address, bytes});
  }

  [[nodiscard]] char const* read_distance(allocation const*& found)
  {
    std::uint64_t distance = 0;
    if (!bytes_.number(distance)) { return cut_off; }
    if (distance == 0 || distance > allocations_.size()) { return "an allocation does not exist"; }
    found = &allocations_[allocations_.size() - distance];
    return found->device_id == current_.device_id ? fine : "an allocation is on another device";
  }

  [[nodiscard]] char const* read_allocation(trace_record kind)
  {
    std::uint64_t address = 0;
    std::uint64_t bytes   = 0;
    if (kind == trace_record::allocate) {
      if (!read_range(address, bytes)) { return cut_off; }
    } else {
      allocation const* earlier = nullptr;
      if (auto const* const wrong = read_distance(earlier)) { return wrong; }
      address = earlier->address;
      bytes   = earlier->bytes;
      if (kind == trace_record::allocate_at && !read_bytes(bytes)) { return cut_off; }
      expect_after(address, bytes);
    }
    allocations_.push_back({address, bytes, current_.device_id});
    add(trace_event_kind::allocate, address, bytes);
    return fine;
  }

  [[nodiscard]] char const* read_free(trace_record kind)
  {
    std::uint64_t address = 0;
    std::uint64_t bytes   = 0;
    if (kind == trace_record::free) {
      allocation const* freed = nullptr;
      if (auto const* const wrong = read_distance(freed)) { return wrong; }
      address = freed->address;
      bytes   = freed->bytes;
    } else if (!read_range(address, bytes)) {
      return cut_off;
    }
    add(trace_event_kind::free, address, bytes);
    return fine;
  }

  [[nodiscard]] char const* read_touch()
  {
    std::uint64_t flags   = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes   = 0;
    if (!bytes_.number(flags) || !read_range(address, bytes)) { return cut_off; }
    if ((flags & ~(trace_touch_write | trace_touch_by_cpu)) != 0) { return "a touch of no kind"; }
    auto const kind = static_cast<std::uint64_t>(trace_event_kind::read) + flags;
    add(static_cast<trace_event_kind>(kind), address, bytes);
    return fine;
  }

  [[nodiscard]] char const* read_mark()
  {
    std::uint64_t kind = 0;
    if (!bytes_.number(kind)) { return cut_off; }
    if (kind > static_cast<std::uint64_t>(trace_mark_kind::kernel)) { return "a mark of no kind"; }
    trace_mark mark;
    mark.time_ns = tick_ * trace_tick_ns;
    mark.thread  = current_.thread;
    mark.kind    = static_cast<trace_mark_kind>(kind);
    if (mark.kind != trace_mark_kind::stage_end) {
      if (auto const* const wrong = read_name(mark.name)) { return wrong; }
    }
    if (mark.kind == trace_mark_kind::stage_begin) {
      if (auto const* const wrong = read_name(mark.thread_name)) { return wrong; }
    }
    result_.marks.push_back(mark);
    return fine;
  }

  [[nodiscard]] char const* read_name(std::uint32_t& index)
  {
    std::uint64_t wanted = 0;
    if (!bytes_.number(wanted)) { return cut_off; }
    if (wanted > result_.names.size()) { return "a name was never spelt"; }
    if (wanted == result_.names.size()) {
      std::uint64_t length = 0;
      if (!bytes_.number(length)) { return cut_off; }
      if (length > trace_longest_text_bytes) { return "a name is too long"; }
      if (length > bytes_.left()) { return cut_off; }
      auto const text = bytes_.take(length);
      result_.names.emplace_back(text.begin(), text.end());
    }
    index = static_cast<std::uint32_t>(wanted);
    return fine;
  }

  void add(trace_event_kind kind, std::uint64_t address, std::uint64_t bytes)
  {
    result_.events.push_back({tick_ * trace_tick_ns,
                              address,
                              bytes,
                              current_.stream,
                              -1,
                              current_.thread,
                              current_.device_id,
                              kind,
                              0});
  }

  number_reader bytes_;
  trace_chunk_events& result_;
  std::vector<allocation> allocations_;
  std::vector<context> contexts_;
  context current_{};
  bool entered_{false};
  std::uint64_t tick_{0};
  std::uint64_t next_address_{0};
};

char const* trace_decoder::read_events(std::span<std::uint8_t const> payload,
                                       trace_chunk_events& result)
{
  auto const before       = result.events.size();
  auto const* const wrong = chunk_reader{payload, result}.read();
  live_.follow(std::span{result.events}.subspan(before));
  return wrong;
}

char const* trace_decoder::read_samples(std::span<std::uint8_t const> payload,
                                        std::vector<sample>& result)
{
  number_reader bytes{payload};
  std::uint64_t count = 0;
  if (!bytes.number(count)) { return cut_off; }
  std::map<std::int32_t, sample> previous;
  for (; count != 0; --count) {  // a row is two bytes at least, so this ends with the bytes
    std::uint64_t device = 0;
    std::uint64_t mask   = 0;
    if (!bytes.number(device) || !bytes.number(mask)) { return cut_off; }
    auto const device_id = static_cast<std::int64_t>(unzigzag(device));
    if (device_id < std::numeric_limits<std::int32_t>::min() ||
        device_id > std::numeric_limits<std::int32_t>::max() || mask >= end_of_field_bits) {
      return "a sample of no kind";
    }
    auto& row     = previous[static_cast<std::int32_t>(device_id)];
    row.device_id = static_cast<std::int32_t>(device_id);
    for (std::size_t field = 0; field < sample_fields.size(); ++field) {
      std::uint64_t difference = 0;
      if ((mask & field_changed(field)) == 0) { continue; }
      if (!bytes.number(difference)) { return cut_off; }
      row.*sample_fields[field] += unzigzag(difference);
    }
    if ((mask & known_changed) != 0) {
      std::uint64_t known = 0;
      if (!bytes.number(known)) { return cut_off; }
      row.known = static_cast<std::uint32_t>(known);
    }
    result.push_back(row);
  }
  return bytes.at_end() ? fine : "bytes follow the last sample";
}

}  // namespace rmm_uvm::monitor
