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

  /**
   * @brief What this thread is about to give back: meanwhile its requests may pass the cap by it.
   *
   * For who gives memory back before anybody uses the new one.
   */
  class giving_back {
   public:
    /** @param bytes that nobody uses */
    explicit giving_back(std::size_t bytes) noexcept : bytes_{bytes}, outer_{now()}
    {
      now() = this;
    }
    giving_back(giving_back const&)            = delete;
    giving_back& operator=(giving_back const&) = delete;
    giving_back(giving_back&&)                 = delete;
    giving_back& operator=(giving_back&&)      = delete;
    ~giving_back() { now() = outer_; }

    /** @brief How far the last request passed the cap; 0: it did not. */
    [[nodiscard]] std::size_t passed_bytes() const noexcept { return passed_bytes_; }
    /** @brief Whether the last one of this thread did, as of now. */
    [[nodiscard]] static bool any_passed() noexcept
    {
      return now() != nullptr && now()->passed_bytes_ > 0;
    }

   private:
    friend class managed_account;
    [[nodiscard]] static giving_back*& now() noexcept
    {
      thread_local giving_back* inmost = nullptr;
      return inmost;
    }
    std::size_t bytes_;
    giving_back* outer_;
    std::size_t passed_bytes_{0};
  };

  /** @param limit_bytes cap in bytes, or `unlimited` */
  explicit managed_account(std::size_t limit_bytes = unlimited) noexcept : limit_bytes_{limit_bytes}
  {
  }

  /** @brief Takes `bytes` if they still fit under the cap; false, and nothing taken, otherwise. */
  [[nodiscard]] bool try_reserve(std::size_t bytes) noexcept
  {
    auto* const gives        = giving_back::now();
    std::size_t const beyond = gives == nullptr ? 0 : gives->bytes_;
    std::size_t used         = used_bytes_.load(std::memory_order_relaxed);
    std::size_t const limit  = limit_bytes_.load(std::memory_order_relaxed);
    do {  // NOLINT(cppcoreguidelines-avoid-do-while): around compare_exchange
      auto const counted = used - (used < beyond ? used : beyond);
      if (counted > limit || bytes > limit - counted) { return false; }
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (gives != nullptr) {
      bool const passes    = used > limit || bytes > limit - used;
      gives->passed_bytes_ = passes ? used + bytes - limit : 0;
    }
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
