// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/device_transfers.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/sim/address_space.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace rmm_uvm::sim {

/**
 * @brief `device_transfers` without a GPU: copies are made at once, marks are reached at once.
 *
 * Needs a device with backing, and answers not_supported without. Copies take no modelled time of
 * their own; what they touch of managed memory migrates as a kernel's touch would. Handles work
 * between processes of one user: memory that `allocate_device` gave out is mapped there through
 * /proc. Work is ordered by the calls alone, so an event has nothing to wait for. `planned_answers`
 * knows its calls by the names of its methods, and those of marks and events as `done`, `wait`,
 * `record` and `make_wait`.
 */
class simulated_transfers final : public device_transfers {
 public:
  /** @param device kept alive; not null */
  explicit simulated_transfers(std::shared_ptr<simulated_device> device)
    : device_{std::move(device)}
  {
  }
  ~simulated_transfers() override;
  simulated_transfers(simulated_transfers const&)            = delete;
  simulated_transfers& operator=(simulated_transfers const&) = delete;
  simulated_transfers(simulated_transfers&&)                 = delete;
  simulated_transfers& operator=(simulated_transfers&&)      = delete;

  [[nodiscard]] char const* error_name(int /*native_error*/) const noexcept override { return ""; }
  status find_memory(std::uintptr_t address, std::optional<memory_kind>& found) noexcept override;
  status wait_for(stream_handle stream) noexcept override;
  status copy(std::span<transfer const> copies) noexcept override;
  status take_staging(std::size_t bytes) noexcept override;
  status mark(std::shared_ptr<transfer_mark>& made) noexcept override;
  status ipc_memory_handle(std::uintptr_t base, ipc_handle& handle) noexcept override;
  status open_ipc_memory(ipc_handle const& handle, std::uintptr_t& address) noexcept override;
  status close_ipc_memory(std::uintptr_t address) noexcept override;
  status make_ipc_event(std::shared_ptr<ipc_event>& made) noexcept override;
  status open_ipc_event(ipc_handle const& handle,
                        std::shared_ptr<ipc_event>& opened) noexcept override;

 private:
  struct opened_memory {
    ipc_handle handle;
    address_range addresses;
    std::size_t bytes{0};
    std::size_t openings{0};
  };

  [[nodiscard]] status copy_one(transfer const& one) noexcept;
  [[nodiscard]] std::optional<memory_kind> find(std::uintptr_t address) const;

  std::shared_ptr<simulated_device> device_;
  mutable ranked_mutex<lock_rank::transfers> mutex_;
  std::map<std::uintptr_t, opened_memory> opened_;
  memory_range staging_;  // taken, and used for nothing: copies are made at once
};

}  // namespace rmm_uvm::sim
