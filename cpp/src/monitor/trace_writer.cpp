// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "trace_numbers.hpp"

#include <rmm_uvm/monitor/trace_writer.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace rmm_uvm::monitor {
namespace {

[[nodiscard]] std::uint32_t this_thread() noexcept
{
  thread_local auto const number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return number;
}

[[nodiscard]] std::uint64_t as_number(stream_handle stream) noexcept
{
  return reinterpret_cast<std::uintptr_t>(stream);
}

template <typename Value>
void put_fixed(std::uint8_t* where, Value value) noexcept
{
  for (std::size_t index = 0; index < sizeof(value); ++index) {
    where[index] = static_cast<std::uint8_t>(value >> (8U * index));
  }
}

// Magic, version, two reserved bytes, then length and sum of the facts that follow.
[[nodiscard]] std::vector<std::uint8_t> make_header(std::string_view facts)
{
  constexpr std::size_t fixed_bytes = 20;
  std::vector<std::uint8_t> header(fixed_bytes + facts.size());
  std::copy(trace_magic.begin(), trace_magic.end(), header.begin());
  std::copy(facts.begin(), facts.end(), header.begin() + fixed_bytes);
  put_fixed(&header[8], trace_version);
  put_fixed(&header[12], static_cast<std::uint32_t>(facts.size()));
  put_fixed(&header[16], trace_crc32(std::span{header}.subspan(fixed_bytes)));
  return header;
}

}  // namespace

trace_writer::trace_writer(int file,
                           std::string_view facts,
                           std::uint64_t origin_ns,
                           std::shared_ptr<clock> time)
  : clock_{std::move(time)},
    origin_ns_{origin_ns},
    encoder_{std::make_unique<trace_encoder>()},
    file_{file},
    spare_{trace_encoder::make_buffer()}
{
  auto const header = make_header(facts);
  std::lock_guard const lock{file_mutex_};
  (void)write_bytes(header);
}

trace_writer::~trace_writer()
{
  if (process_.here()) {
    close();
  } else if (file_ >= 0) {
    ::close(file_);  // the child's own descriptor of the parent's file
  }
}

std::uint64_t trace_writer::monotonic_ns() noexcept
{
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t trace_writer::tick() const noexcept
{
  auto const now = clock_ ? clock_->now_ns() : monotonic_ns();
  return now > origin_ns_ ? (now - origin_ns_) / trace_tick_ns : 0;
}

bool trace_writer::finished() const noexcept { return !active(); }

bool trace_writer::active() const noexcept
{
  return !stopped_.load(std::memory_order_relaxed) && process_.here();
}

template <typename Record>
void trace_writer::record(std::uint64_t trace_counts::* count, Record const& write) noexcept
{
  if (!active()) { return; }  // in a child the lock may be held by a thread that is not there
  std::unique_lock events{events_mutex_};
  if (encoder_ == nullptr) { return; }  // closed meanwhile
  ++(counts_.*count);
  if (!write(tick())) {  // the time is read under the lock, so that it does not go back
    ++counts_.dropped;
    return;
  }
  if (encoder_->full()) { write_events(events); }
}

void trace_writer::allocated(int device_id, memory_range range, stream_handle stream) noexcept
{
  trace_context const context{device_id, this_thread(), as_number(stream)};
  record(&trace_counts::allocations,
         [&](std::uint64_t now) { return encoder_->allocated(now, context, range); });
}

void trace_writer::freed(int device_id, memory_range range, stream_handle stream) noexcept
{
  trace_context const context{device_id, this_thread(), as_number(stream)};
  record(&trace_counts::frees,
         [&](std::uint64_t now) { return encoder_->freed(now, context, range); });
}

void trace_writer::touched(int device_id, memory_range range, bool write, bool by_cpu) noexcept
{
  touched(device_id, range, write, by_cpu, nullptr);
}

void trace_writer::touched(
  int device_id, memory_range range, bool write, bool by_cpu, stream_handle stream) noexcept
{
  trace_context const context{device_id, this_thread(), as_number(stream)};
  auto const flags = (write ? trace_touch_write : 0) | (by_cpu ? trace_touch_by_cpu : 0);
  record(&trace_counts::touches,
         [&](std::uint64_t now) { return encoder_->touched(now, context, range, flags); });
}

void trace_writer::mark(trace_mark_kind kind,
                        std::string_view name,
                        std::string_view second) noexcept
{
  record(&trace_counts::marks, [&](std::uint64_t now) {
    try {
      encoder_->mark(now, {.thread = this_thread()}, kind, name, second);
      return true;
    } catch (...) {  // no memory to keep a name
      return false;
    }
  });
}

void trace_writer::stage_begin(std::string_view name, std::string_view thread_name) noexcept
{
  mark(trace_mark_kind::stage_begin, name, thread_name);
}

void trace_writer::stage_end() noexcept { mark(trace_mark_kind::stage_end, {}, {}); }

void trace_writer::annotate(std::string_view text) noexcept
{
  mark(trace_mark_kind::annotation, text, {});
}

void trace_writer::kernel(std::string_view name) noexcept
{
  mark(trace_mark_kind::kernel, name, {});
}

void trace_writer::samples(std::span<sample const> rows) noexcept
{
  if (!process_.here()) { return; }
  std::size_t lost = 0;
  for (auto left = rows; !left.empty();) {
    auto const part = left.first(std::min(left.size(), trace_most_samples));
    left            = left.subspan(part.size());
    bool kept       = false;
    try {
      auto chunk = encode_samples(part);
      chunk.insert(chunk.begin(), trace_chunk_header_bytes, 0);
      std::lock_guard const file{file_mutex_};
      if (active()) {
        write_chunk(trace_chunk::samples, chunk);
        kept = true;
      }
    } catch (...) {
      kept = false;  // no memory
    }
    if (!kept) { lost += part.size(); }
  }
  std::lock_guard const events{events_mutex_};
  counts_.samples += rows.size();
  counts_.dropped += lost;
}

void trace_writer::write_events(
  std::unique_lock<ranked_mutex<lock_rank::trace_events>>& events) noexcept
{
  // Waiting here, with the events' lock held, is what bounds the memory when the disk is slow.
  std::lock_guard const file{file_mutex_};
  encoder_->take(spare_);
  events.unlock();
  if (active()) { write_chunk(trace_chunk::events, spare_); }
}

void trace_writer::flush() noexcept
{
  if (!active()) { return; }
  std::unique_lock events{events_mutex_};
  if (encoder_ != nullptr && !encoder_->empty()) { write_events(events); }
}

void trace_writer::close() noexcept
{
  if (!process_.here()) { return; }
  flush();  // most of it while others go on; what comes until the locks are taken follows below
  std::lock_guard const events{events_mutex_};
  std::lock_guard const file{file_mutex_};
  if (file_ < 0) { return; }
  if (active() && !encoder_->empty()) {
    encoder_->take(spare_);
    write_chunk(trace_chunk::events, spare_);
  }
  if (active()) {
    std::array<std::uint8_t, trace_chunk_header_bytes + longest_number_bytes> chunk{};
    auto const* const end = put_number(chunk.data() + trace_chunk_header_bytes, counts_.dropped);
    write_chunk(trace_chunk::end,
                std::span{chunk}.first(static_cast<std::size_t>(end - chunk.data())));
  }
  stopped_.store(true, std::memory_order_relaxed);
  // Some file systems tell only now that there was no room.
  if (::close(std::exchange(file_, -1)) != 0 && error_ == 0) { error_ = errno; }
  // What it observed keeps the writer itself.
  encoder_.reset();
  std::vector<std::uint8_t>{}.swap(spare_);
}

void trace_writer::write_chunk(trace_chunk kind, std::span<std::uint8_t> chunk) noexcept
{
  auto const payload = chunk.subspan(trace_chunk_header_bytes);
  chunk[8]           = static_cast<std::uint8_t>(kind);
  put_fixed(chunk.data(), static_cast<std::uint32_t>(payload.size()));
  put_fixed(chunk.data() + 4, trace_crc32(chunk.subspan(8)));
  (void)write_bytes(chunk);
}

bool trace_writer::write_bytes(std::span<std::uint8_t const> bytes) noexcept
{
  auto const whole_bytes = written_bytes_.load(std::memory_order_relaxed);
  for (auto left = bytes; !left.empty();) {
    auto const written = ::write(file_, left.data(), left.size());
    if (written >= 0) {
      left = left.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
      stopped_.store(true, std::memory_order_relaxed);
      // Half a chunk is of no use. Fails where the file is none, such as a pipe.
      static_cast<void>(::ftruncate(file_, static_cast<::off_t>(whole_bytes)) == 0);
      return false;
    }
  }
  written_bytes_.store(whole_bytes + bytes.size(), std::memory_order_relaxed);
  return true;
}

std::string trace_writer::failure() const
{
  if (!process_.here()) { return "this process was forked from the one that traces"; }
  std::lock_guard const file{file_mutex_};
  return error_ == 0 ? std::string{} : std::generic_category().message(error_);
}

trace_counts trace_writer::counts() const noexcept
{
  if (!process_.here()) { return {}; }
  std::lock_guard const events{events_mutex_};
  auto result          = counts_;
  result.written_bytes = written_bytes_.load(std::memory_order_relaxed);
  return result;
}

}  // namespace rmm_uvm::monitor
