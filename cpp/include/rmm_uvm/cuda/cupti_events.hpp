// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cupti_session.hpp>
#include <rmm_uvm/driver/migration_events.hpp>
#include <rmm_uvm/driver/migration_tally.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {

/**
 * @brief Why managed pages of some GPUs move, and which, as CUPTI tells it. Off until started.
 *
 * Measured on an H200 (CUDA 13.0): while it is on, a kernel that does nothing but fault takes 2.3
 * to 2.7 times as long; code that moves nothing, no longer. Bytes are
 * exact once `stop` has returned, and lag behind by up to a second before. Thread-safe.
 */
class cupti_events final : public migration_events {
 public:
  /** @param device_ids CUDA ordinals of the devices to watch; their sums are one */
  cupti_events(std::shared_ptr<cupti_session> session, std::vector<int> device_ids);
  ~cupti_events() override;
  cupti_events(cupti_events const&)            = delete;
  cupti_events& operator=(cupti_events const&) = delete;
  cupti_events(cupti_events&&)                 = delete;
  cupti_events& operator=(cupti_events&&)      = delete;

  [[nodiscard]] availability start() override;
  void stop() noexcept override;
  [[nodiscard]] cause_totals read() noexcept override;
  [[nodiscard]] std::vector<block_traffic> busiest(std::size_t most) override;

 private:
  std::shared_ptr<cupti_session> session_;
  std::vector<int> device_ids_;
  migration_tally tally_;
  ranked_mutex<lock_rank::event_switch> mutex_;  // of starting and stopping
  bool started_{false};
};

/** @brief A source, or why there is none. */
struct opened_cupti_events {
  std::shared_ptr<migration_events> events;  ///< null when not opened
  availability opened;
};

/**
 * @brief Loads libcupti and libcuda; switches nothing on.
 * @param libraries paths and names of libcupti to try; those of the first call that succeeds decide
 * @param device_ids CUDA ordinals of the devices to watch
 */
[[nodiscard]] opened_cupti_events open_cupti_events(std::vector<std::string> const& libraries,
                                                    std::vector<int> device_ids);

}  // namespace rmm_uvm::cuda
