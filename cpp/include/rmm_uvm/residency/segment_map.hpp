// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace rmm_uvm {

/** @brief What an allocation in a segment took, as far as its start tells. */
struct carved_range {
  memory_range extent;          ///< from the start to the next byte that may be somebody else's
  memory_range newly_live;      ///< of it, what was free before; the rest was taken to be live
  std::size_t likely_bytes{0};  ///< how long it likely is at most; within the extent; 0: not known
};

/**
 * @brief Which parts of a caching allocator's segments are handed out.
 *
 * PyTorch tells where an allocation begins and that it ends, not how long it is. That is enough:
 * whatever lies between a start and the next one is nobody else's. What is free is free for
 * certain; a live part may be longer than the allocation that it is of.
 *
 * Of a segment nothing is known until it was free as a whole (`add_free`) or its allocations were
 * listed (`list`). Pure, not thread-safe.
 */
class segment_map {
 public:
  /** @brief A segment of which every allocation from now on is told. */
  void add_free(memory_range segment);
  /** @brief A segment that somebody uses in ways that are not told. */
  void add_unknown(memory_range segment);
  /**
   * @brief Forgets what is known of a segment: somebody uses it in ways that are not told.
   * @param free_part is called with each part that was free; takes no memory
   */
  template <typename Call>
  void make_unknown(std::uintptr_t segment, Call const& free_part) noexcept
  {
    auto const found = segments_.find(segment);
    if (found == segments_.end() || !found->second.known) { return; }
    found->second.known = false;
    auto const last     = parts_.lower_bound(found->second.range.end());
    for (auto it = parts_.lower_bound(segment); it != last; it = parts_.erase(it)) {
      if (!it->second.live) { free_part(memory_range{it->first, it->second.end - it->first}); }
    }
  }
  /** @brief Forgets a segment. */
  void remove(std::uintptr_t segment) noexcept;

  /**
   * @brief All live allocations of an unknown segment, by address and size; every other is told.
   *
   * What was told of the segment so far is newer than the list: whoever begins to tell before the
   * list is made misses nothing.
   * @return what is free
   */
  std::vector<memory_range> list(std::uintptr_t segment, std::span<memory_range const> live);

  /**
   * @brief An allocation begins. @return none outside of known segments
   * @throws std::bad_alloc if there is no memory for an entry: nothing has changed
   */
  std::optional<carved_range> on_allocate(std::uintptr_t start);
  /** @brief An allocation ends. @return what is free now; no bytes if it was not known */
  memory_range on_free(std::uintptr_t start);
  /** @brief Whether nothing of a segment is handed out, for certain. */
  [[nodiscard]] bool is_free(memory_range segment) const;
  /** @brief How long the live allocation at `start` is, for the next one like it. */
  void measured(std::uintptr_t start, std::size_t bytes) noexcept;

  /** @brief A segment, and whether its allocations are known. */
  struct held_segment {
    memory_range range;
    bool known{false};
  };
  /** @brief The segment that holds `address`. */
  [[nodiscard]] std::optional<held_segment> segment_of(std::uintptr_t address) const;

 private:
  struct part {
    std::uintptr_t end{0};
    bool live{false};
    std::uint64_t place{0};         // in the order of allocations; 0: not seen to begin
    std::size_t measured_bytes{0};  // 0: not measured
  };
  using part_map = std::map<std::uintptr_t, part>;

  [[nodiscard]] part_map::iterator part_of(std::uintptr_t address);
  void note_untracked(std::uintptr_t start, bool live);

  std::map<std::uintptr_t, held_segment> segments_;
  part_map parts_;                       // of known segments, without gaps
  std::map<std::uintptr_t, bool> told_;  // of unknown segments: whether what begins there is live
  // A program that repeats itself allocates in the same order: how long each one was the last two
  // times, by its start and those of the ones before. Of one before alone, a convolution's
  // workspace was taken for a smaller one of the same step, and kernels faulted the rest in: 0.2 s
  // a step.
  struct last_sizes {
    std::size_t newer{0};
    std::size_t older{0};
  };
  std::unordered_map<std::uint64_t, last_sizes> sizes_;
  std::array<std::uintptr_t, 3> before_{};
};

}  // namespace rmm_uvm
