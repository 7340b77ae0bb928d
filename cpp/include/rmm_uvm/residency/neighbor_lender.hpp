// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rmm_uvm {

/**
 * @brief Who says how much of other devices' memory this process may hold.
 *
 * Before bytes move to a neighbour they are claimed; a claim ends with `release`, or with
 * `cancel` if they never went. Bytes are whole blocks of 2 MiB. Calls are cheap, thread-safe and
 * take no lock of the CUDA driver; a device that the lender does not know grants nothing.
 */
class neighbor_lender {
 public:
  neighbor_lender()                                  = default;
  neighbor_lender(neighbor_lender const&)            = delete;
  neighbor_lender& operator=(neighbor_lender const&) = delete;
  neighbor_lender(neighbor_lender&&)                 = delete;
  neighbor_lender& operator=(neighbor_lender&&)      = delete;
  virtual ~neighbor_lender()                         = default;

  // Of a device whose memory this process would hold.
  /**
   * @brief Asks for memory of a neighbour.
   * @param free_bytes what the driver says is free there now; what others claim between that
   * reading and this call, and place at once, is the reserve's to bear
   * @param reserve_bytes what shall stay free there
   * @return bytes granted, whole blocks, 0 to `bytes`
   */
  [[nodiscard]] virtual std::size_t claim(int device_id,
                                          std::size_t bytes,
                                          std::size_t free_bytes,
                                          std::size_t reserve_bytes) noexcept = 0;
  /** @brief Claimed bytes are there now: free memory shows them. */
  virtual void placed(int device_id, std::size_t bytes) noexcept = 0;
  /** @brief Claimed bytes that are not placed will not come. */
  virtual void cancel(int device_id, std::size_t bytes) noexcept = 0;
  /** @brief Placed bytes have left. */
  virtual void release(int device_id, std::size_t bytes) noexcept = 0;
  /**
   * @brief Bytes that this process has to give back there, of all that it holds now.
   *
   * What is leaving already is still held until it is released: the caller takes it off.
   * @param shortage_bytes what free memory there lacks to its reserve, 0 where it is not looked at
   */
  [[nodiscard]] virtual std::size_t excess(int device_id, std::size_t shortage_bytes) noexcept = 0;
  /** @brief The same where free memory is not looked at. */
  [[nodiscard]] std::size_t excess(int device_id) noexcept { return excess(device_id, 0); }
  /** @brief Bytes that this process has claimed there. */
  [[nodiscard]] virtual std::size_t held(int device_id) noexcept = 0;
  /** @brief Whether a program there wants its links for itself now. */
  [[nodiscard]] virtual bool busy(int device_id) noexcept = 0;

  // Of this process' own device, for others. Without others to tell, nothing happens.
  /** @brief Lets others hold so much of its memory together from now on. @return whether told */
  virtual bool offer(int device_id, std::size_t bytes) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(bytes);
    return false;
  }
  /** @brief Ends the offer: others go by free memory again. */
  virtual void withdraw(int device_id) noexcept { static_cast<void>(device_id); }
  /** @brief Bytes that others hold of it. */
  [[nodiscard]] virtual std::size_t claimed_by_others(int device_id) noexcept
  {
    static_cast<void>(device_id);
    return 0;
  }
  /** @brief Says whether its links are busy. @return false if it cannot be said now */
  virtual bool set_busy(int device_id, bool busy_now) noexcept
  {
    static_cast<void>(device_id);
    static_cast<void>(busy_now);
    return true;  // there is nobody to tell
  }
};

}  // namespace rmm_uvm
