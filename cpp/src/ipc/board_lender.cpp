// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/ipc/board_lender.hpp>

namespace rmm_uvm::ipc {

device_uuid const* board_lender::uuid_of(int device_id) const noexcept
{
  for (auto const& each : devices_) {
    if (each.device_id == device_id) { return &each.uuid; }
  }
  return nullptr;
}

std::size_t board_lender::claim(int device_id,
                                std::size_t bytes,
                                std::size_t free_bytes,
                                std::size_t reserve_bytes) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid == nullptr ? 0 : board_->claim(*uuid, bytes, free_bytes, reserve_bytes);
}

void board_lender::placed(int device_id, std::size_t bytes) noexcept
{
  if (auto const* const uuid = uuid_of(device_id)) { board_->placed(*uuid, bytes); }
}

void board_lender::cancel(int device_id, std::size_t bytes) noexcept
{
  if (auto const* const uuid = uuid_of(device_id)) { board_->cancel(*uuid, bytes); }
}

void board_lender::release(int device_id, std::size_t bytes) noexcept
{
  if (auto const* const uuid = uuid_of(device_id)) { board_->release(*uuid, bytes); }
}

std::size_t board_lender::excess(int device_id, std::size_t shortage_bytes) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid == nullptr ? 0 : board_->excess(*uuid, shortage_bytes);
}

std::size_t board_lender::held(int device_id) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid == nullptr ? 0 : board_->held(*uuid);
}

bool board_lender::busy(int device_id) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid != nullptr && board_->busy(*uuid);
}

bool board_lender::offer(int device_id, std::size_t bytes) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid != nullptr && board_->offer(*uuid, bytes);
}

void board_lender::withdraw(int device_id) noexcept
{
  if (auto const* const uuid = uuid_of(device_id)) { board_->withdraw(*uuid); }
}

std::size_t board_lender::claimed_by_others(int device_id) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid == nullptr ? 0 : board_->claimed_by_others(*uuid);
}

bool board_lender::set_busy(int device_id, bool busy_now) noexcept
{
  auto const* const uuid = uuid_of(device_id);
  return uuid == nullptr || board_->set_busy(*uuid, busy_now);
}

}  // namespace rmm_uvm::ipc
