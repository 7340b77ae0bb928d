// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/mr/managed_memory_resource.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/segment_map.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rmm_uvm::mr {

/** @brief Levels and counts of `torch_segments`. */
struct torch_segment_statistics {
  std::size_t segment_bytes{0};       ///< that torch holds now
  std::size_t peak_segment_bytes{0};  ///< most at once
  std::uint64_t segments{0};          ///< taken so far
  std::uint64_t refused{0};           ///< requests that were answered with no memory
  std::uint64_t reused{0};            ///< allocations in segments that were followed
  std::uint64_t freed{0};             ///< their frees
  std::uint64_t unfenced{0};          ///< of these, with work on other streams that is not known
  std::uint64_t in_place{0};          ///< of segments, taken in place of others that were free
};

/**
 * @brief Managed memory for PyTorch's caching allocator: each of its segments is a slab.
 *
 * While everything fits, a segment is live as a whole and nothing else is known. `follow` begins to
 * keep count of the allocations in it, of which torch tells where they begin and end: then what is
 * free in a segment is dead, and never copied.
 *
 * torch gives no segment back while its pool is one of all threads, and so does not try again when
 * a request is refused. So a request that fits once segments that are free as a whole have gone is
 * served at once, and `take_owed` says that they have to go before the memory is used.
 *
 * Thread-safe. torch calls `allocate` and `deallocate` under its own lock: they take no lock of
 * Python's.
 */
class torch_segments {
 public:
  /** @brief Called once, from whichever thread takes a segment that passes a bound. */
  using pressure_call = void (*)(void*);

  /**
   * @param memory where segments come from
   * @param residency the one of that memory
   * @param maximum_bytes of all segments together; more is refused
   */
  torch_segments(managed_memory_resource memory,
                 std::shared_ptr<rmm_uvm::managed_residency> residency,
                 std::size_t maximum_bytes);

  /** @brief Takes a segment, and makes it usable on the device. @return null: no memory */
  [[nodiscard]] void* allocate(std::size_t bytes, stream_handle stream) noexcept;
  /** @brief Gives a segment back. @return false if it is none of these, or
   * not of `bytes` */
  bool deallocate(void* segment, std::size_t bytes, stream_handle stream) noexcept;
  /** @brief Whether a segment holds `address`. */
  [[nodiscard]] bool holds(std::uintptr_t address) const;

  /** @brief Has `call(argument)` made once when segments have grown past the budget. */
  void on_pressure(pressure_call call, void* argument) noexcept;
  /**
   * @brief Has `call(argument)` made once when segments have grown past `bytes`, or one is refused:
   * from then on somebody has to know what is free in them.
   */
  void on_scarcity(pressure_call call, void* argument, std::size_t bytes) noexcept;
  /** @brief Whether free segments have to go for one that was taken; says so once. No lock. */
  [[nodiscard]] bool take_owed() noexcept
  {
    return owes_.load(std::memory_order_relaxed) && owes_.exchange(false);
  }
  /** @brief How much still has to go. */
  [[nodiscard]] std::size_t owed_bytes() const noexcept;

  /**
   * @brief Counts the allocations in segments from now on.
   * @param live every live allocation in any of the segments
   * @pre those who allocate and free are told by `on_allocate` and `on_free` from before the list
   *      was made
   */
  void follow(std::vector<memory_range> const& live);
  /**
   * @brief Counts them no more: what lives in segments stays as it is until they are freed.
   * @param routed whether torch goes on to allocate in them: then what is free may be handed out at
   *        any time, and counts as live
   */
  void unfollow(bool routed) noexcept;
  /** @brief From now on work of other streams may use any allocation: no free is fenced. */
  void several_streams() noexcept { several_streams_.store(true, std::memory_order_relaxed); }

  /** @brief torch hands out memory that begins at `start`. */
  void on_allocate(std::uintptr_t start) noexcept;
  /** @brief torch takes back the memory that begins at `start`; it is not handed out yet. */
  void on_free(std::uintptr_t start) noexcept;
  /** @brief How long the live allocation at `start` is. */
  void measured(std::uintptr_t start, std::size_t bytes) noexcept;

  /** @brief Levels and counts now. */
  [[nodiscard]] torch_segment_statistics statistics() const noexcept;
  /** @brief What was said when a request was refused last; empty: none was. */
  [[nodiscard]] std::string last_refusal() const;

 private:
  struct held {
    stream_handle stream{nullptr};
    bool kept{false};   // it stays on the device, since it is small
    bool fresh{false};  // what it was taken for is about to be told
  };
  struct entry {
    bool followed{false};  // the allocations in it are
    bool kept{false};
  };

  [[nodiscard]] entry enter(memory_range segment, stream_handle stream);
  [[nodiscard]] bool stays(memory_range segment) const noexcept;
  [[nodiscard]] bool is_kept(std::uintptr_t address) const;
  [[nodiscard]] std::optional<carved_range> carved_at(std::uintptr_t start);
  void make_unknown(std::uintptr_t segment) noexcept;
  [[nodiscard]] std::size_t free_bytes() const;
  [[nodiscard]] std::optional<std::size_t> reserve(std::size_t bytes);
  void release(std::size_t bytes) noexcept;
  void owe(std::size_t beyond_cap_bytes) noexcept;
  void look_for_pressure() noexcept;
  void look_for_scarcity() noexcept;

  managed_memory_resource memory_;
  std::shared_ptr<rmm_uvm::managed_residency> residency_;
  std::size_t maximum_bytes_;
  std::atomic<bool> several_streams_{false};
  std::atomic<pressure_call> pressure_{nullptr};
  std::atomic<void*> pressure_argument_{nullptr};
  std::atomic<pressure_call> scarcity_{nullptr};
  std::atomic<void*> scarcity_argument_{nullptr};
  std::atomic<std::size_t> scarce_bytes_{0};
  std::atomic<bool> owes_{false};

  ranked_mutex<lock_rank::segment_answers>
    telling_;  // of allocations, one at a time; taken before the other one
  mutable ranked_mutex<lock_rank::segments> mutex_;
  segment_map map_;
  std::unordered_map<std::uintptr_t, held> held_;  // every segment, by its start
  bool following_{false};
  std::optional<stream_handle> first_stream_;  // that a segment was taken for
  std::size_t kept_bytes_{0};                  // of small segments, which stay on the device
  std::size_t owed_bytes_{0};                  // of free segments that are to go
  torch_segment_statistics counts_;
  std::string refusal_;
};

}  // namespace rmm_uvm::mr
