// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/harvest_rule.hpp>
#include <rmm_uvm/residency/neighbor_lender.hpp>

#include <array>
#include <cstddef>
#include <mutex>

namespace rmm_uvm {

/** @brief Lends by the driver's free memory alone: this process agrees with nobody. */
class free_memory_lender final : public neighbor_lender {
 public:
  static constexpr int most_devices = 64;  ///< CUDA ordinals below this are known

  using neighbor_lender::excess;
  [[nodiscard]] std::size_t claim(int device_id,
                                  std::size_t bytes,
                                  std::size_t free_bytes,
                                  std::size_t reserve_bytes) noexcept override;
  void placed(int device_id, std::size_t bytes) noexcept override;
  void cancel(int device_id, std::size_t bytes) noexcept override;
  void release(int device_id, std::size_t bytes) noexcept override;
  [[nodiscard]] std::size_t excess(int device_id, std::size_t shortage_bytes) noexcept override;
  [[nodiscard]] std::size_t held(int device_id) noexcept override;
  [[nodiscard]] bool busy(int device_id) noexcept override;

 private:
  [[nodiscard]] harvest_holding* of(int device_id) noexcept;

  ranked_mutex<lock_rank::lender> mutex_;
  std::array<harvest_holding, most_devices> holdings_{};
};

}  // namespace rmm_uvm
