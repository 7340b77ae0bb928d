// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace rmm_uvm {

/** @brief What an address belongs to. */
struct memory_kind {
  bool managed{false};      ///< managed memory: it may be on the host, and has no IPC handle
  bool ipc_capable{false};  ///< cudaMalloc memory, which `ipc_memory_handle` takes
  std::uintptr_t base{0};   ///< first byte of its allocation
  std::size_t bytes{0};     ///< length of its allocation in bytes
  int device_id{0};         ///< CUDA ordinal of the device it was allocated on
};

/** @brief One copy of `bytes` bytes. */
struct transfer {
  std::uintptr_t to{0};    ///< first byte to write
  std::uintptr_t from{0};  ///< first byte to read
  std::size_t bytes{0};    ///< length in bytes; 0 copies nothing
};

/** @brief Bytes in a handle of CUDA IPC. Source: `CU_IPC_HANDLE_SIZE` in cuda.h. */
inline constexpr std::size_t ipc_handle_bytes = 64;

/** @brief What another process opens memory or an event with; opaque. */
using ipc_handle = std::array<std::uint8_t, ipc_handle_bytes>;

/** @brief A point in the work of a `device_transfers`. Thread-safe; keeps its maker alive. */
class transfer_mark {
 public:
  transfer_mark()                                = default;
  transfer_mark(transfer_mark const&)            = delete;
  transfer_mark& operator=(transfer_mark const&) = delete;
  transfer_mark(transfer_mark&&)                 = delete;
  transfer_mark& operator=(transfer_mark&&)      = delete;
  virtual ~transfer_mark()                       = default;

  /**
   * @brief Asks whether everything before the mark is done; never blocks.
   * @param[out] reached set on success
   * @return what the work failed with, if it did
   */
  virtual status done(bool& reached) noexcept = 0;
  /** @brief Blocks until everything before the mark is done. @return as `done` */
  virtual status wait() noexcept = 0;
  /** @brief Lets work that is issued to `stream` from now on wait for the mark. */
  virtual status make_wait(stream_handle stream) noexcept = 0;
};

/** @brief An event that streams of several processes wait for. Thread-safe. */
class ipc_event {
 public:
  ipc_event()                            = default;
  ipc_event(ipc_event const&)            = delete;
  ipc_event& operator=(ipc_event const&) = delete;
  ipc_event(ipc_event&&)                 = delete;
  ipc_event& operator=(ipc_event&&)      = delete;
  virtual ~ipc_event()                   = default;

  /** @brief What another process opens it with. */
  [[nodiscard]] virtual ipc_handle const& handle() const noexcept = 0;
  /** @brief Stands from now on for the work issued to `stream` so far. */
  virtual status record(stream_handle stream) noexcept = 0;
  /** @brief Lets work that is issued to `stream` from now on wait for the last `record`. */
  virtual status make_wait(stream_handle stream) noexcept = 0;
};

/**
 * @brief Copies between memory of one device and of others, and memory shared between processes.
 *
 * Copies run in one stream of this object, in the order of the calls (see `take_staging` for two);
 * `wait_for` orders them after a stream of somebody else, marks tell when they are done. Stream
 * arguments are as for `uvm_driver`. Calls return a status and never throw. Thread-safe.
 */
class device_transfers {
 public:
  device_transfers()                                   = default;
  device_transfers(device_transfers const&)            = delete;
  device_transfers& operator=(device_transfers const&) = delete;
  device_transfers(device_transfers&&)                 = delete;
  device_transfers& operator=(device_transfers&&)      = delete;
  virtual ~device_transfers()                          = default;

  /** @brief What the driver calls an error, such as "CUDA_ERROR_INVALID_VALUE"; "" if nothing. */
  [[nodiscard]] virtual char const* error_name(int native_error) const noexcept = 0;

  /**
   * @brief Looks up what an address belongs to.
   * @param[out] found set on success; none when the address is no memory of the driver's
   */
  virtual status find_memory(std::uintptr_t address,
                             std::optional<memory_kind>& found) noexcept = 0;

  /**
   * @brief Lets copies that are issued from now on wait for the work issued to `stream` so far.
   * @return not_supported, and nothing is issued, while the stream is being captured
   */
  virtual status wait_for(stream_handle stream) noexcept = 0;

  /**
   * @brief Issues copies. Their ranges may lie on any device that this one can reach.
   * @return of the first copy that was refused; those before it are issued
   */
  virtual status copy(std::span<transfer const> copies) noexcept = 0;

  /**
   * @brief Has copies from now on go through device memory of this object's own, in halves.
   *
   * For copies from and to managed memory beside kernels: the driver gives a direct one an engine
   * that kernels need, and either waits for the other. A later copy may read before an earlier one
   * has written: one that needs the bytes of another has to `wait_for` a stream that was made to
   * wait for a mark behind it.
   * @param bytes to take, at least 512; they stay until this object goes
   * @return out_of_memory when there are none; invalid_value for fewer, or a second time
   */
  virtual status take_staging(std::size_t bytes) noexcept = 0;

  /** @brief Marks the work issued so far. @param[out] made set on success */
  virtual status mark(std::shared_ptr<transfer_mark>& made) noexcept = 0;

  /**
   * @brief Makes what another process opens an allocation with.
   * @param base first byte of cudaMalloc memory
   * @param[out] handle set on success
   */
  virtual status ipc_memory_handle(std::uintptr_t base, ipc_handle& handle) noexcept = 0;

  /**
   * @brief Maps an allocation of another process, as a whole.
   * @param[out] address its first byte here, set on success; the same for a second opening
   */
  virtual status open_ipc_memory(ipc_handle const& handle, std::uintptr_t& address) noexcept = 0;

  /**
   * @brief Closes one opening of `open_ipc_memory`; after the last one the memory is unmapped.
   * @pre no work in flight uses it
   * @return invalid_value when there is no such opening
   */
  virtual status close_ipc_memory(std::uintptr_t address) noexcept = 0;

  /** @brief Makes an event that others can open. @param[out] made set on success */
  virtual status make_ipc_event(std::shared_ptr<ipc_event>& made) noexcept = 0;

  /** @brief Opens an event of another process. @param[out] opened set on success */
  virtual status open_ipc_event(ipc_handle const& handle,
                                std::shared_ptr<ipc_event>& opened) noexcept = 0;
};

}  // namespace rmm_uvm
