// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory_observer.hpp>
#include <rmm_uvm/monitor/python_frames.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief A line of a program, and its function. */
struct code_line {
  std::string file;
  std::string function;
  int line{0};
};

/** @brief How an interpreter tells where a thread is. None of these takes the GIL. */
struct interpreter {
  std::uintptr_t (*thread_state)() noexcept {nullptr};  ///< of the calling thread; 0: has none
  bool (*describe)(code_place place, code_line& line){nullptr};  ///< of a frame of this thread
  frame_layout layout;
};

/** @brief What moved of some memory; bytes. */
struct moved_bytes {
  std::uint64_t brought{0};    ///< to the device, not counting what a new allocation is made of
  std::uint64_t faulted{0};    ///< to the device by page faults
  std::uint64_t evicted{0};    ///< from the device, to the host or another GPU
  std::uint64_t read_back{0};  ///< to the host, because the CPU used it
  std::uint64_t dropped{0};    ///< given up after the free, without a copy
  std::uint64_t returned{0};   ///< of `brought` and `faulted`: had been on the device before

  [[nodiscard]] std::uint64_t copied() const noexcept
  {
    return brought + faulted + evicted + read_back;
  }
};

/** @brief How far a run is: bytes that were allocated and copied until now. */
struct progress {
  static constexpr std::size_t most_stretches = 16;  ///< equal ones, that a run is divided into
  std::uint64_t bytes{0};
  unsigned shift{0};  ///< a stretch has 2^shift bytes

  [[nodiscard]] std::size_t stretch_of(std::uint64_t moment) const noexcept
  {
    return static_cast<std::size_t>(moment >> shift);
  }
  void advance(std::uint64_t by) noexcept;
};

/** @brief Bytes, by the stretch of the run in which they were allocated. */
struct bytes_by_stretch {
  std::array<std::uint64_t, progress::most_stretches> bytes{};
  unsigned shift{0};  ///< as of `progress`

  /** @brief Joins stretches until they are as long as the run's. */
  void join(progress const& run) noexcept;
  /** @brief Joins stretches, and returns the bytes of the one that a moment is in. */
  [[nodiscard]] std::uint64_t& at(std::uint64_t moment, progress const& run) noexcept;
};

/** @brief What was allocated by one path of calls, and what moved of it. */
struct path_account {
  std::vector<std::uint32_t> lines;  ///< numbers of lines, the innermost first; empty: unknown
  std::uint64_t allocations{0};
  std::uint64_t live_bytes{0};    ///< now
  std::uint64_t peak_bytes{0};    ///< the most at a time
  bytes_by_stretch allocated;     ///< all of them
  bytes_by_stretch held;          ///< what is live now
  bytes_by_stretch held_at_peak;  ///< what was live when that was the most, for the first time
  bytes_by_stretch held_at_top;   ///< what was live at the run's peak
  std::uint64_t tops{0};          ///< of the run, when it had those: as many as it had peaks
  moved_bytes moved;

  /** @brief Keeps what is live as that of the run's peak, unless that is done; before a change. */
  void keep_top(std::uint64_t now) noexcept
  {
    if (tops == now) { return; }
    held_at_top = held;
    tops        = now;
  }
};

/** @brief One allocation. */
struct object_account {
  std::uint64_t number{0};  ///< of the allocation, from 1 on
  std::uint32_t path{0};
  std::uint64_t bytes{0};
  bool live{true};
  moved_bytes moved;
};

/** @brief Everything that is known. */
struct line_report {
  std::vector<code_line> lines;
  std::vector<path_account> paths;      ///< the first: of nobody's line
  std::vector<object_account> objects;  ///< those that moved most, the busiest first
  std::size_t last_stretch{0};          ///< of the run: the one that it is in now
  std::uint64_t peak_bytes{0};          ///< of all paths together: the most, or nearly, at a time
  std::size_t peak_stretch{0};          ///< in which there was that much first
};

/**
 * @brief Keeps account of what moves by the lines of the program that allocated it.
 *
 * Of each live allocation it knows the path of calls, read in the thread that allocates. What is
 * freed stays that path's until the addresses are handed out again. In a forked child it does
 * nothing. Thread-safe; what there is no memory for is of nobody's line.
 */
class line_account final : public memory_observer {
 public:
  static constexpr std::size_t most_objects = 32;  ///< of those that moved most

  explicit line_account(interpreter const& asked) noexcept : asked_{asked} {}

  void allocated(int device_id, memory_range range, stream_handle stream) noexcept override;
  void freed(int device_id, memory_range range, stream_handle stream) noexcept override;
  void touched(int, memory_range, bool, bool) noexcept override {}
  void moved(memory_range within, std::size_t bytes, traffic what) noexcept override;
  /**
   * @brief So many bytes moved, as far as one can tell: a part of a range was seen to.
   * @param seen what was seen
   * @param bytes for how many that stands; more than were seen, as a rule
   */
  void estimated(memory_range seen, std::uint64_t bytes, traffic what) noexcept;
  [[nodiscard]] bool finished() const noexcept override { return !open_ || !process_.here(); }

  /** @brief Ignores what it is told from now on; reads no frames when this has returned. */
  void close() noexcept;
  /** @brief What is known now. @throws std::bad_alloc */
  [[nodiscard]] line_report report() const;

 private:
  struct piece {  // of addresses, all of one allocation
    std::size_t bytes{0};
    object_account object;        // what moved of it, while it is live
    std::size_t new_bytes{0};     // nothing is in them: not used yet, or discarded
    std::uint64_t away_bytes{0};  // left the device, and did not come back
    std::uint64_t made{0};        // how far the run was when it was allocated
  };
  using pieces = std::map<std::uintptr_t, piece>;

  [[nodiscard]] std::uint32_t path_here();
  [[nodiscard]] std::uint32_t line_of(code_place const& place);
  void forget(memory_range range);
  void share_out(memory_range within, std::uint64_t bytes, bool exactly, traffic what) noexcept;
  void enter(piece& owner, std::uint64_t bytes, traffic what) noexcept;
  void retire(object_account const& object) noexcept;

  interpreter asked_;
  process_mark process_;
  std::atomic<bool> open_{true};
  mutable ranked_mutex<lock_rank::lines> mutex_;
  // With the lock:
  pieces pieces_;
  std::vector<path_account> paths_ = std::vector<path_account>(1);
  std::vector<code_line> lines_;
  std::unordered_map<std::uint64_t, std::uint32_t> path_of_hash_;
  std::unordered_map<std::uint64_t, std::uint32_t> line_of_place_;
  std::vector<object_account> busiest_;
  std::uint64_t allocations_{0};
  progress run_;
  std::uint64_t live_bytes_{0};
  std::uint64_t peak_bytes_{0};   // not each small allocation at the top makes another peak
  std::uint64_t peak_moment_{0};  // when that was reached
  std::uint64_t tops_{0};         // how often there was another peak
};

}  // namespace rmm_uvm::monitor
