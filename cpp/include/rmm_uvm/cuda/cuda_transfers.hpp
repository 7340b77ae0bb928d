// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/cuda/cuda_driver.hpp>
#include <rmm_uvm/cuda/cuda_use.hpp>
#include <rmm_uvm/driver/device_transfers.hpp>
#include <rmm_uvm/process/locks.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rmm_uvm::cuda {

class staged_copies;

/**
 * @brief `device_transfers` over libcuda.
 *
 * Copies run in a non-blocking stream, made at the first use. Memory of another GPU, opened by CUDA
 * IPC, is copied like any other: addresses are unified, and opening it enables peer access. Must be
 * held by a `std::shared_ptr`, which marks and events share. At process exit, and in a forked
 * child, nothing is given back.
 */
class cuda_transfers final : public device_transfers,
                             public std::enable_shared_from_this<cuda_transfers> {
 public:
  /** @param driver kept alive; not null */
  explicit cuda_transfers(std::shared_ptr<cuda_driver> driver);
  ~cuda_transfers() override;
  cuda_transfers(cuda_transfers const&)            = delete;
  cuda_transfers& operator=(cuda_transfers const&) = delete;
  cuda_transfers(cuda_transfers&&)                 = delete;
  cuda_transfers& operator=(cuda_transfers&&)      = delete;

  [[nodiscard]] char const* error_name(int native_error) const noexcept override;
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
  class event_mark;
  class shared_event;

  template <typename Call>
  status in_context(Call const& call) const noexcept;
  [[nodiscard]] status make_stream() noexcept;
  [[nodiscard]] CUstream last_stream() const noexcept;
  [[nodiscard]] status take_event(CUevent& event) noexcept;
  void give_back(CUevent event) noexcept;

  std::shared_ptr<cuda_driver> driver_;
  cuda_use use_;
  ranked_mutex<lock_rank::transfers> mutex_;  // of what follows
  CUstream stream_{nullptr};
  std::vector<CUevent> spare_events_;
  std::map<std::uintptr_t, std::size_t> opened_;  // openings of IPC memory, by address
  ranked_mutex<lock_rank::staging> staging_;      // of what follows; held while copies are issued
  std::unique_ptr<staged_copies> staged_;
  std::atomic<CUstream> onward_{nullptr};  // that staged copies end in; none: copies are direct
};

}  // namespace rmm_uvm::cuda
