// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/clock.hpp>
#include <rmm_uvm/monitor/trace_decoder.hpp>
#include <rmm_uvm/monitor/trace_writer.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Shows what it was told, a microsecond later each time. */
class stepping_clock final : public monitor::clock {
 public:
  std::uint64_t now_ns() noexcept override { return now_.fetch_add(1000); }
  bool sleep_until(std::uint64_t /*deadline_ns*/,
                   std::atomic<bool> const& /*end*/) noexcept override
  {
    return true;
  }
  void wake() noexcept override {}

 private:
  std::atomic<std::uint64_t> now_{0};
};

/** @brief A file in memory; gives a writer a descriptor, and itself the bytes. */
class trace_file {
 public:
  trace_file() : file_{::memfd_create("trace", MFD_CLOEXEC)}
  {
    if (file_ < 0) { throw std::runtime_error{"no file in memory"}; }
  }
  trace_file(trace_file const&)            = delete;
  trace_file& operator=(trace_file const&) = delete;
  trace_file(trace_file&&)                 = delete;
  trace_file& operator=(trace_file&&)      = delete;
  ~trace_file() { ::close(file_); }

  /** @brief A descriptor that the writer closes. */
  [[nodiscard]] int for_writer() const { return ::dup(file_); }

  [[nodiscard]] std::vector<std::uint8_t> bytes() const
  {
    auto const length = ::lseek(file_, 0, SEEK_END);
    std::vector<std::uint8_t> found(static_cast<std::size_t>(length));
    EXPECT_EQ(::pread(file_, found.data(), found.size(), 0), length);
    return found;
  }

 private:
  int file_;
};

/** @brief What a trace holds, read with the decoder; fails the test where it is not whole. */
struct read_trace {
  explicit read_trace(std::span<std::uint8_t const> bytes) { read(bytes); }

  void read(std::span<std::uint8_t const> bytes)
  {
    constexpr std::size_t header_bytes = 20;
    ASSERT_GE(bytes.size(), header_bytes);
    std::uint32_t facts_bytes = 0;
    std::memcpy(&facts_bytes, &bytes[12], sizeof(facts_bytes));
    bytes = bytes.subspan(header_bytes + facts_bytes);
    monitor::trace_decoder decoder;
    while (!bytes.empty() && !ended) {
      std::uint32_t length = 0;
      std::uint32_t sum    = 0;
      std::memcpy(&length, bytes.data(), sizeof(length));
      std::memcpy(&sum, &bytes[4], sizeof(sum));
      auto const kind    = static_cast<monitor::trace_chunk>(bytes[8]);
      auto const payload = bytes.subspan(monitor::trace_chunk_header_bytes, length);
      ASSERT_EQ(monitor::trace_crc32(bytes.subspan(8, 1 + length)), sum);
      ++chunks;
      if (kind == monitor::trace_chunk::events) {
        contents.names.clear();  // they are those of one chunk
        ASSERT_STREQ(decoder.read_events(payload, contents), nullptr);
      } else if (kind == monitor::trace_chunk::samples) {
        ASSERT_STREQ(monitor::trace_decoder::read_samples(payload, samples), nullptr);
      } else {
        ended = true;
      }
      bytes = bytes.subspan(monitor::trace_chunk_header_bytes + length);
    }
    EXPECT_TRUE(bytes.empty());
  }

  monitor::trace_chunk_events contents;
  std::vector<monitor::sample> samples;
  std::size_t chunks{0};
  bool ended{false};
};

}  // namespace rmm_uvm::tests
