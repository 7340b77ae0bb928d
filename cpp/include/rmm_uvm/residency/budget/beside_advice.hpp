// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>

namespace rmm_uvm {

/**
 * @brief Our own advice to the driver about blocks on neighbours: mappings and copies, and its end.
 *
 * It advises, and changes no record: whoever calls it has marked the blocks busy. Without the
 * ledger's lock, except where a method takes a view.
 */
class beside_advice {
 public:
  /** @param adviser what users advised about the same blocks; null: nobody does */
  beside_advice(uvm_driver& driver,
                budget_ledger& ledger,
                neighbor_memory const& neighbors,
                memory_adviser* adviser) noexcept
    : driver_{driver}, ledger_{ledger}, neighbors_{neighbors}, adviser_{adviser}
  {
  }

  /** @brief Has kernels use ranges where they lie; after a failure none of them is mapped. */
  status map(range_list ranges) noexcept;
  /** @brief Ends that. */
  status unmap(range_list ranges) noexcept;
  /** @brief Of ranges with two copies one stays, at `where`, without that anything is copied. */
  status leave_one_copy(range_list ranges, location where) noexcept;
  /**
   * @brief Ends what was advised about blocks that come to the device.
   *
   * Neighbouring blocks together: each call waits for the kernel driver. Takes no memory.
   */
  void end(claim_list const& blocks) noexcept;
  /** @brief The same from under the lock, which it gives up where anything was advised. */
  void end(ledger_view& view, claim_list const& blocks) noexcept;

 private:
  uvm_driver& driver_;
  budget_ledger& ledger_;
  neighbor_memory const& neighbors_;
  memory_adviser* adviser_;
};

}  // namespace rmm_uvm
