// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/availability.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief What calls of a simulated device answer in their stead, once each. For tests.
 *
 * Touches nothing. Where nothing is planned, asking is one load. Thread-safe, with a lock of its
 * own.
 */
class planned_answers {
 public:
  /**
   * @brief The call after `skip` further ones of that name answers `answer`.
   *
   * Names are those of the seam's methods and of the program's; of counters `available` and
   * `request_faults`, of events `start`; `simulated_transfers` names its own.
   * @throws std::bad_alloc
   */
  void plan(std::string_view call, status answer, unsigned skip);
  /** @brief Forgets what no call met; returns how many. */
  std::size_t cancel() noexcept;
  /** @brief What was planned for this call, which meets it or is one of those before. */
  [[nodiscard]] std::optional<status> met_by(std::string_view call) noexcept
  {
    if (unmet_.load(std::memory_order_acquire) == 0) { return std::nullopt; }
    return take(call);
  }
  /** @brief The same of a call that answers with a reason. @throws std::bad_alloc */
  [[nodiscard]] std::optional<availability> refusal_met_by(std::string_view call);

  /** @brief A stream looks like this from now on, however often it is asked. */
  void set_capture_state(stream_handle stream, capture_state state);
  /** @brief What a stream looks like: `none` where nothing was set. */
  [[nodiscard]] capture_state capturing(stream_handle stream) const noexcept;

 private:
  struct planned {
    std::string call;
    status given;
    unsigned skip{0};
  };

  [[nodiscard]] std::optional<status> take(std::string_view call) noexcept;

  mutable ranked_mutex<lock_rank::answers> mutex_;  // of what follows; `unmet_` is read without
  std::vector<planned> planned_;
  std::atomic<std::size_t> unmet_{0};
  std::map<stream_handle, capture_state> capture_states_;
};

}  // namespace rmm_uvm::sim
