// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/replay/live_blocks.hpp>
#include <rmm_uvm/replay/replay_event.hpp>
#include <rmm_uvm/replay/slab_map.hpp>
#include <rmm_uvm/replay/timeline.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace rmm_uvm::replay {

/** @brief How a recording is replayed. */
struct replay_settings {
  prefetch_mode mode{prefetch_mode::automatic};  ///< of the chain's resource and adaptor
  bool discard_dead{false};       ///< on a nearly full device, drop blocks without a live byte
  std::size_t stage_count{1};     ///< stages that events name, at least 1
  std::uint64_t last_time_ns{0};  ///< time of the recording's last event; divides the timeline
};

/** @brief What one stage moved, all its runs together. */
struct stage_totals {
  double migration_ns{0};            ///< modelled time of the driver's work
  std::uint64_t to_device_bytes{0};  ///< moved to the device
  std::uint64_t to_host_bytes{0};    ///< moved to the host, evictions included
  std::uint64_t evicted_bytes{0};    ///< of those, pushed out to make room
  std::uint64_t peak_live_bytes{0};  ///< most bytes allocated at once
};

/** @brief The event that neither device nor host had memory for. */
struct out_of_memory_record {
  std::uint64_t record{0};  ///< number of the event, from 0
  std::uint16_t stage{0};   ///< its stage
  std::uint64_t bytes{0};   ///< what it touched
};

/**
 * @brief Does on a simulated device what a recorded program did: the chain's own decisions, without
 *        its pool.
 *
 * The pool's work is in the recording: its allocations have addresses. What the memory resource and
 * the adaptor do around it is done here, through the same `managed_residency`. A slab is taken
 * when the first event lies in it; a recording does not say when the pool took it. Not thread-safe.
 */
class replayer {
 public:
  /**
   * @brief Has addresses for the slabs, and takes none of them yet.
   * @param device fresh; for this replay alone
   * @param slabs recorded ones, of whole blocks, ascending and apart
   * @param settings how
   * @throws std::invalid_argument if the slabs are not so, or there is no stage
   * @throws std::bad_alloc if there are no addresses for a slab
   */
  replayer(std::shared_ptr<sim::simulated_device> device,
           std::span<memory_range const> slabs,
           replay_settings const& settings);

  /**
   * @brief Replays events, after those that were replayed before; none once memory ran out.
   *
   * How a recording is cut into calls changes nothing.
   * @throws std::invalid_argument naming the first event that is unusable: of an unknown kind or
   *         stage, outside all slabs, an allocation over live bytes, a free of dead ones. The
   *         replay cannot go on then.
   * @throws std::bad_alloc
   */
  void feed(std::span<replay_event const> events);

  /** @brief Closes the last stage and the timeline; to be called after the last event, once. */
  void finish();

  /** @brief Events replayed, the one that ran out of memory not included. */
  [[nodiscard]] std::uint64_t replayed() const noexcept { return replayed_; }
  /** @brief Where memory ran out, if it did. */
  [[nodiscard]] std::optional<out_of_memory_record> out_of_memory() const noexcept
  {
    return out_of_memory_;
  }
  /** @brief What the stages moved; complete after `finish`. */
  [[nodiscard]] std::vector<stage_totals> const& stages() const noexcept { return stages_; }
  /** @brief Memory over recorded time; complete after `finish`. */
  [[nodiscard]] std::vector<timeline_point> const& points() const noexcept
  {
    return timeline_.points();
  }
  /** @brief The most bytes allocated at once. */
  [[nodiscard]] std::size_t peak_live_bytes() const noexcept { return live_.peak_live_bytes(); }
  /** @brief What the device counted. */
  [[nodiscard]] sim::simulated_statistics statistics() const noexcept
  {
    return device_->view().statistics();
  }
  /** @brief What was prefetched, discarded and skipped, and why. */
  [[nodiscard]] prefetch_statistics prefetches() const noexcept { return residency_.statistics(); }

 private:
  void replay(replay_event const& event);
  void take(std::size_t slab);
  void allocate(located_range const& where);
  void free(located_range const& where);
  void touch(replay_event const& event, located_range const& where);
  void enter_stage(std::size_t stage);
  void close_stage();
  void add_point(std::uint64_t next_time_ns);
  [[nodiscard]] bool nearly_full() const noexcept;
  [[nodiscard]] std::vector<memory_range> runs_of(std::vector<std::size_t> const& blocks) const;
  [[noreturn]] void refuse(replay_event const& event, char const* why) const;

  std::shared_ptr<sim::simulated_device> device_;
  managed_residency residency_;
  replay_settings settings_;
  slab_map slabs_;
  std::vector<bool> taken_;  // by slab
  live_blocks live_;
  timeline timeline_;
  std::vector<stage_totals> stages_;
  std::size_t stage_{0};
  sim::simulated_statistics at_stage_begin_;
  std::uint64_t replayed_{0};
  std::uint64_t time_ns_{0};
  std::optional<out_of_memory_record> out_of_memory_;
};

}  // namespace rmm_uvm::replay
