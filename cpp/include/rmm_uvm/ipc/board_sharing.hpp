// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/ipc/harvest_board.hpp>
#include <rmm_uvm/residency/budget_sharing.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace rmm_uvm::ipc {

/** @brief Budgets of one device agree on a board: those of other processes, and of other pools. */
class board_sharing final : public budget_sharing {
 public:
  /**
   * @param board joined, for this budget alone
   * @param device what all call it
   */
  board_sharing(std::shared_ptr<harvest_board> board, device_uuid const& device) noexcept
    : board_{std::move(board)}, device_{device}
  {
  }

  bool tell(budget_share const& mine) noexcept override { return board_->share(device_, mine); }
  void withdraw() noexcept override { board_->end_share(device_); }
  [[nodiscard]] std::size_t others(std::span<budget_share> found) noexcept override
  {
    return board_->shares_of_others(device_, found);
  }

 private:
  std::shared_ptr<harvest_board> board_;
  device_uuid device_;
};

}  // namespace rmm_uvm::ipc
