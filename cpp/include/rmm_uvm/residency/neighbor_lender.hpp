// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rmm_uvm {

/**
 * @brief Says how much of other devices' memory may be held, and when it must go back.
 *
 * Bytes are whole blocks of 2 MiB. Thread-safe; never throws. Reads are a few loads, a claim may
 * take microseconds.
 */
class neighbor_lender {
 public:
  neighbor_lender()                                  = default;
  neighbor_lender(neighbor_lender const&)            = delete;
  neighbor_lender& operator=(neighbor_lender const&) = delete;
  neighbor_lender(neighbor_lender&&)                 = delete;
  neighbor_lender& operator=(neighbor_lender&&)      = delete;
  virtual ~neighbor_lender()                         = default;

  /**
   * @brief Asks for memory of a device, before anything is put there.
   * @param device_id CUDA ordinal
   * @param bytes wanted
   * @param free_bytes that nobody holds there, as its driver tells
   * @param reserve_bytes of it that shall stay free
   * @return what is granted, 0 to `bytes`; held until `release`
   */
  [[nodiscard]] virtual std::size_t claim(int device_id,
                                          std::size_t bytes,
                                          std::size_t free_bytes,
                                          std::size_t reserve_bytes) noexcept = 0;
  /** @brief So much of what was granted lies there now, and is not free any more. */
  virtual void placed(int device_id, std::size_t bytes) noexcept = 0;
  /** @brief So much of what was granted is needed no more, or has left. */
  virtual void release(int device_id, std::size_t bytes) noexcept = 0;
  /** @brief How much of what is held there must leave, since its owner needs it. */
  [[nodiscard]] virtual std::size_t excess(int device_id) noexcept = 0;
  /** @brief Whether its owner wants no traffic of others now. */
  [[nodiscard]] virtual bool busy(int device_id) noexcept = 0;
};

}  // namespace rmm_uvm
