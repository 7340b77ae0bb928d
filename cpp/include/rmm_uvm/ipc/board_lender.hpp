// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/ipc/harvest_board.hpp>
#include <rmm_uvm/residency/neighbor_lender.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace rmm_uvm::ipc {

/** @brief Lends what the processes on a board agree about; knows devices by CUDA ordinal. */
class board_lender final : public neighbor_lender {
 public:
  /** @brief What a device is called in this process, and what by all. */
  struct named_device {
    int device_id{0};
    device_uuid uuid{};
  };

  /**
   * @param board joined
   * @param devices all that will be asked for; others grant nothing
   */
  board_lender(std::shared_ptr<harvest_board> board, std::vector<named_device> devices) noexcept
    : board_{std::move(board)}, devices_{std::move(devices)}
  {
  }

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
  bool offer(int device_id, std::size_t bytes) noexcept override;
  void withdraw(int device_id) noexcept override;
  [[nodiscard]] std::size_t claimed_by_others(int device_id) noexcept override;
  bool set_busy(int device_id, bool busy_now) noexcept override;

 private:
  [[nodiscard]] device_uuid const* uuid_of(int device_id) const noexcept;

  std::shared_ptr<harvest_board> board_;
  std::vector<named_device> devices_;
};

}  // namespace rmm_uvm::ipc
