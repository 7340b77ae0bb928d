// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::replay {

/** @brief Memory at one time of a recording. */
struct timeline_point {
  std::uint64_t time_ns{0};          ///< recorded time
  std::uint64_t live_bytes{0};       ///< most bytes allocated at once since the point before
  std::uint64_t resident_bytes{0};   ///< of managed memory on the device
  std::uint64_t to_device_bytes{0};  ///< moved until then
  std::uint64_t to_host_bytes{0};    ///< moved until then
};

/**
 * @brief Decides when points of a timeline are due: one at time 0, one at the end of each step.
 *
 * Steps divide the recorded time evenly, so that points depend on the recording alone and not on
 * how it was fed. Steps without an event give no point.
 */
class timeline {
 public:
  static constexpr std::size_t most_points = 1000;

  /** @param last_time_ns of the recording's last event */
  explicit timeline(std::uint64_t last_time_ns) noexcept
    : step_ns_{last_time_ns / (most_points - 1) + 1}
  {
  }

  /** @brief Whether the step that is open ends before `time_ns`. */
  [[nodiscard]] bool due(std::uint64_t time_ns) const noexcept { return step_of(time_ns) > step_; }

  /** @brief Notes bytes allocated at a time. @pre `!due(time_ns)`, times ascend */
  void note(std::uint64_t time_ns, std::uint64_t live_bytes) noexcept
  {
    time_ns_    = std::max(time_ns_, time_ns);
    peak_bytes_ = std::max(peak_bytes_, live_bytes);
  }

  /**
   * @brief Adds the point of the open step and opens the step of `next_time_ns`.
   * @param now everything but time and live bytes; these are as noted
   * @throws std::bad_alloc
   */
  void add(timeline_point now, std::uint64_t live_bytes, std::uint64_t next_time_ns)
  {
    now.time_ns    = time_ns_;
    now.live_bytes = peak_bytes_;
    points_.push_back(now);
    step_       = step_of(next_time_ns);
    peak_bytes_ = live_bytes;
  }

  /** @brief The points so far, times ascending. */
  [[nodiscard]] std::vector<timeline_point> const& points() const noexcept { return points_; }

 private:
  [[nodiscard]] std::uint64_t step_of(std::uint64_t time_ns) const noexcept
  {
    // Times past the announced end belong to the last step.
    return std::min<std::uint64_t>(time_ns / step_ns_, most_points - 2);
  }

  std::uint64_t step_ns_;
  std::uint64_t step_{0};
  std::uint64_t time_ns_{0};
  std::uint64_t peak_bytes_{0};
  std::vector<timeline_point> points_;
};

}  // namespace rmm_uvm::replay
