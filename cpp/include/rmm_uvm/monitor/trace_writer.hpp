// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/monitor/clock.hpp>
#include <rmm_uvm/monitor/sample.hpp>
#include <rmm_uvm/monitor/trace_encoder.hpp>
#include <rmm_uvm/monitor/trace_format.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief What a writer was told until it was closed or failed. */
struct trace_counts {
  std::uint64_t allocations{0};
  std::uint64_t frees{0};
  std::uint64_t touches{0};
  std::uint64_t marks{0};
  std::uint64_t samples{0};
  std::uint64_t dropped{0};        ///< of these, not recorded: no such memory, or none for a name
  std::uint64_t written_bytes{0};  ///< of the file, as far as it is written
};

/**
 * @brief Writes a trace: what a program allocates, frees and is known to touch, stages, samples.
 *
 * Memory is fixed until `close` frees it: two buffers of 64 KiB and a table of 512 KiB. A buffer
 * goes to the file when it is full, on the thread that filled it while others go on in the second
 * one, and at `flush`, which somebody calls once a second. When the file cannot be written, tracing
 * stops, `failure` says why, and the program goes on. In a forked child a writer does nothing.
 * Thread-safe: a lock for events, held for a tenth of a microsecond, and one for the file.
 */
class trace_writer final : public memory_observer {
 public:
  /**
   * @brief Takes over an empty file and writes the header.
   * @param file descriptor; closed by `close`
   * @param facts JSON object, UTF-8
   * @param origin_ns what the clock shows at time 0 of the trace
   * @param time where the time comes from; null for CLOCK_MONOTONIC
   * @throws std::bad_alloc if there is no memory; the file is then left open
   */
  trace_writer(int file,
               std::string_view facts,
               std::uint64_t origin_ns,
               std::shared_ptr<clock> time = nullptr);
  trace_writer(trace_writer const&)            = delete;
  trace_writer& operator=(trace_writer const&) = delete;
  trace_writer(trace_writer&&)                 = delete;
  trace_writer& operator=(trace_writer&&)      = delete;
  ~trace_writer() override;

  void allocated(int device_id, memory_range range, stream_handle stream) noexcept override;
  void freed(int device_id, memory_range range, stream_handle stream) noexcept override;
  void touched(int device_id, memory_range range, bool write, bool by_cpu) noexcept override;
  /** @brief The same, on a stream that is known. */
  void touched(
    int device_id, memory_range range, bool write, bool by_cpu, stream_handle stream) noexcept;
  /** @brief Whether it was closed, failed, or belongs to the parent of this process. */
  [[nodiscard]] bool finished() const noexcept override;

  /** @brief A stage begins on this thread. @param thread_name for people; may be empty */
  void stage_begin(std::string_view name, std::string_view thread_name) noexcept;
  /** @brief The latest stage of this thread ends. */
  void stage_end() noexcept;
  /** @brief A remark at this time. */
  void annotate(std::string_view text) noexcept;
  /** @brief A kernel begins, which does what is touched at this time. */
  void kernel(std::string_view name) noexcept;
  /** @brief Samples, in order of time. */
  void samples(std::span<sample const> rows) noexcept;

  /** @brief Hands what there is to the operating system. */
  void flush() noexcept;
  /** @brief Writes the rest and the end, and closes the file; idempotent. What follows is dropped.
   */
  void close() noexcept;
  /** @brief Why writing stopped; empty while all is well. */
  [[nodiscard]] std::string failure() const;
  [[nodiscard]] trace_counts counts() const noexcept;

  /** @brief What CLOCK_MONOTONIC shows. */
  [[nodiscard]] static std::uint64_t monotonic_ns() noexcept;

 private:
  [[nodiscard]] bool active() const noexcept;
  [[nodiscard]] std::uint64_t tick() const noexcept;
  template <typename Record>
  void record(std::uint64_t trace_counts::* count, Record const& write) noexcept;
  void mark(trace_mark_kind kind, std::string_view name, std::string_view second) noexcept;
  void write_events(std::unique_lock<ranked_mutex<lock_rank::trace_events>>& events) noexcept;
  void write_chunk(trace_chunk kind, std::span<std::uint8_t> chunk) noexcept;
  [[nodiscard]] bool write_bytes(std::span<std::uint8_t const> bytes) noexcept;

  std::shared_ptr<clock> clock_;
  std::uint64_t origin_ns_;
  process_mark process_;
  std::atomic<bool> stopped_{false};

  mutable ranked_mutex<lock_rank::trace_events> events_mutex_;  // taken before the other one
  std::unique_ptr<trace_encoder> encoder_;                      // null once it is closed
  trace_counts counts_;

  mutable ranked_mutex<lock_rank::trace_file> file_mutex_;
  int file_;
  std::vector<std::uint8_t> spare_;
  std::atomic<std::uint64_t> written_bytes_{0};
  int error_{0};
};

}  // namespace rmm_uvm::monitor
