// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/residency/budget/block_lists.hpp>
#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/residency/fault_in_estimate.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief What the driver's counters tell beside what was asked: bytes that moved by themselves.
 *
 * Bytes that leave the device unasked end an epoch, which puts every block in doubt; from those
 * that come, it estimates what faulted in. It reads counters, and touches nothing else. Under the
 * ledger's lock.
 */
class moved_account {
 public:
  /**
   * @param counters outlive this object
   * @param fetches what comes is asked for; false: it comes by faults
   */
  moved_account(migration_counters const& counters, bool fetches) noexcept;

  /** @brief The epoch now, after a look at the counters. */
  [[nodiscard]] epoch_number epoch() noexcept;
  /** @brief The epoch at the last look. */
  [[nodiscard]] epoch_number last_epoch() const noexcept { return epoch_; }
  /** @brief Bytes that left the device unasked so far, as of now. */
  [[nodiscard]] std::uint64_t left_unasked_bytes() noexcept
  {
    static_cast<void>(epoch());
    return foreign_bytes_;
  }
  /** @brief Ends the epoch: something may have left that no counter shows. */
  void put_in_doubt() noexcept { ++epoch_; }

  /** @brief Bytes are about to be asked to the host: counters rise while that call runs. */
  void ask_to_host(std::size_t bytes) noexcept { asked_bytes_ += bytes; }
  /** @brief They may not have left: what did was not asked for, and puts everything in doubt. */
  void was_not_asked(std::size_t bytes) noexcept { asked_bytes_ -= bytes; }
  /** @brief Bytes are believed on the host from now on. */
  void to_host(std::size_t bytes) noexcept { faulted_in_.to_host(bytes); }
  /** @brief Bytes on the host have no contents to move any more. */
  void forget(std::size_t bytes) noexcept { faulted_in_.forget(bytes); }
  /** @brief See `fault_in_estimate::made`. */
  void made(std::uint64_t bytes) noexcept { faulted_in_.made(bytes); }
  /** @brief Takes note of what is about to be asked to the device. */
  void ask_to_device(claim_list const& blocks) noexcept;
  /** @brief What was asked to the device before the last call of this has come. */
  void earlier_came() noexcept;

  /** @brief See `fault_in_estimate::found`. */
  void found(std::size_t whole_bytes, std::size_t came_bytes) noexcept
  {
    faulted_in_.found(whole_bytes, came_bytes);
  }
  /** @brief See `fault_in_estimate::not_found`. */
  void not_found(std::size_t bytes) noexcept { faulted_in_.not_found(bytes); }
  /** @brief Bytes on the device that are believed on the host, as of now. */
  [[nodiscard]] std::size_t look_for_beside() noexcept
  {
    static_cast<void>(epoch());
    return faulted_in_.beside_bytes();
  }
  /** @brief Bytes that are believed on the host. */
  [[nodiscard]] std::size_t on_host_bytes() const noexcept { return faulted_in_.on_host_bytes(); }

  /** @brief Fills in what faulted in, as of now. */
  void tell(residency_statistics& told) const noexcept;

 private:
  migration_counters const& counters_;
  bool fetches_;
  epoch_number epoch_{1};                 // ends when bytes leave that were not asked to
  std::uint64_t asked_bytes_{0};          // asked to the host
  std::uint64_t foreign_bytes_;           // seen to leave beyond that
  mutable fault_in_estimate faulted_in_;  // looking at statistics looks at the counters
};

}  // namespace rmm_uvm
