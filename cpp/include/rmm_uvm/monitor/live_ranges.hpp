// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/trace_event.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <utility>

namespace rmm_uvm::monitor {

/**
 * @brief Which allocations of a recording are live, event by event.
 *
 * Gives allocations their ids, tells frees and touches whose they are, and notes what contradicts
 * itself. Memory is that of what is live, about 80 bytes each; an event takes time that grows with
 * its logarithm. Not thread-safe.
 */
class live_ranges {
 public:
  /**
   * @brief Follows the next events, and fills in their `id` and `flags`.
   *
   * Ranges of no bytes are never live.
   * @param events in the order in which they happened; kinds that are none are passed over
   * @throws std::bad_alloc if there is no memory
   */
  void follow(std::span<trace_event> events);

 private:
  struct range {
    std::uint64_t bytes;
    std::int64_t id;
  };
  // Ordered by device and address: adjacent ones can be asked whether they overlap, and a made-up
  // file cannot let everything collide as in a hash table.
  using ordered = std::map<std::pair<std::int16_t, std::uint64_t>, range>;

  void allocate(trace_event& event);
  void free(trace_event& event);
  [[nodiscard]] bool overlaps(ordered::const_iterator next, trace_event const& event) const;

  ordered live_;
  std::int64_t next_id_{0};
};

}  // namespace rmm_uvm::monitor
