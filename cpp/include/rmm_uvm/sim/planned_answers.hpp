// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/captured_graph.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief Tests plan here how a later call of a simulated device answers, instead of working.
 *
 * It touches nothing else. If nothing is planned, `met_by` is one load. Thread-safe: it has its own
 * lock.
 */
class planned_answers {
 public:
  /**
   * @brief The call after `skip` further ones of that name answers `answer`.
   *
   * A call has the name of its method: of the seam, of `simulated_program` (`touch`, ...), of
   * `simulated_counters` (`available`, `request_faults`), of `simulated_events` (`start`), or of
   * `simulated_transfers`.
   * @throws std::bad_alloc
   */
  void plan(std::string_view call, status answer, unsigned skip);
  /** @brief Forgets what no call met; returns how many. */
  std::size_t cancel() noexcept;
  /** @brief Counts this call, and returns the answer if one is planned for it now. */
  [[nodiscard]] std::optional<status> met_by(std::string_view call) noexcept
  {
    if (unmet_.load(std::memory_order_acquire) == 0) { return std::nullopt; }
    return take(call);
  }
  /** @brief The same for a call that returns an `availability`. @throws std::bad_alloc */
  [[nodiscard]] std::optional<availability> refusal_met_by(std::string_view call);

  /**
   * @brief From now on `capturing` returns this state for a stream, and a graph of its own is
   * captured if it is `capturing`. @throws std::bad_alloc
   */
  void set_capture_state(stream_handle stream, capture_state state);
  /** @brief The graph that a stream captures; null if it captures none. */
  [[nodiscard]] std::shared_ptr<captured_graph const> graph_of(stream_handle stream) const noexcept;
  /** @brief Ends all graphs that were captured so far. */
  void end_graphs() noexcept;
  /** @brief The state that was set for a stream, or `none`: one load where none was. */
  [[nodiscard]] capture_state capturing(stream_handle stream) const noexcept
  {
    return states_set_.load(std::memory_order_acquire) ? state_of(stream) : capture_state::none;
  }

 private:
  struct planned {
    std::string call;
    status given;
    unsigned skip{0};
  };

  [[nodiscard]] std::optional<status> take(std::string_view call) noexcept;
  [[nodiscard]] capture_state state_of(stream_handle stream) const noexcept;

  mutable ranked_mutex<lock_rank::answers>
    mutex_;  // of what follows; the atomic ones are read without
  std::vector<planned> planned_;
  std::atomic<std::size_t> unmet_{0};
  std::atomic<bool> states_set_{false};
  std::map<stream_handle, capture_state> capture_states_;
  std::map<stream_handle, std::shared_ptr<captured_graph>> graphs_;  // of streams that capture
  std::vector<std::shared_ptr<captured_graph>> captured_;            // that have not ended
};

}  // namespace rmm_uvm::sim
