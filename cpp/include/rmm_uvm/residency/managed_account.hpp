// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

namespace rmm_uvm {

/**
 * @brief Keeps the managed bytes of one process under a hard cap.
 *
 * Shared by every managed memory resource of the process, so that the cap holds for all of them
 * together. Thread-safe and lock-free.
 */
class managed_account {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();  ///< no cap

  /** @param limit_bytes cap in bytes, or `unlimited` */
  explicit managed_account(std::size_t limit_bytes = unlimited) noexcept : limit_bytes_{limit_bytes}
  {
  }

  /** @brief Takes `bytes` if they still fit under the cap; false, and nothing taken, otherwise. */
  [[nodiscard]] bool try_reserve(std::size_t bytes) noexcept
  {
    std::size_t used  = used_bytes_.load(std::memory_order_relaxed);
    std::size_t limit = limit_bytes_.load(std::memory_order_relaxed);
    do {  // NOLINT(cppcoreguidelines-avoid-do-while): around compare_exchange
      if (used > limit || bytes > limit - used) { return false; }
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }

  /** @brief Gives back what `try_reserve` took. */
  void release(std::size_t bytes) noexcept
  {
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  /** @brief Changes the cap. Memory above a lowered cap stays; only new requests are refused. */
  void set_limit_bytes(std::size_t limit_bytes) noexcept
  {
    limit_bytes_.store(limit_bytes, std::memory_order_relaxed);
  }

  /** @brief The cap in bytes. */
  [[nodiscard]] std::size_t limit_bytes() const noexcept
  {
    return limit_bytes_.load(std::memory_order_relaxed);
  }
  /** @brief Bytes taken now. */
  [[nodiscard]] std::size_t used_bytes() const noexcept
  {
    return used_bytes_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> limit_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
};

}  // namespace rmm_uvm
