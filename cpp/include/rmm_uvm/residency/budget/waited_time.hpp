// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief How long at least one request waited: never more than the time that went by.
 *
 * Takes no lock. It is told when a request has waited: what the others still wait comes later.
 */
class waited_time {
 public:
  /** @brief Counts the time from here to the end of a scope. */
  class scope {
   public:
    /** @param counted false: none of it */
    scope(waited_time& all, bool counted) noexcept : all_{counted ? &all : nullptr}
    {
      if (all_ != nullptr) { all_->begin(); }
    }
    ~scope()
    {
      if (all_ != nullptr) { all_->end(); }
    }
    scope(scope const&)            = delete;
    scope& operator=(scope const&) = delete;
    scope(scope&&)                 = delete;
    scope& operator=(scope&&)      = delete;

   private:
    waited_time* all_;
  };

  [[nodiscard]] std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }

 private:
  // Who waits and since when change as one: the number at the top, and a time in ns below, as far
  // as it fits. No wait takes 78 hours.
  static constexpr std::uint64_t one   = std::uint64_t{1} << 48U;
  static constexpr std::uint64_t times = one - 1;

  [[nodiscard]] static std::uint64_t now() noexcept
  {
    auto const since = std::chrono::steady_clock::now().time_since_epoch();
    auto const ns    = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    return static_cast<std::uint64_t>(ns) & times;
  }
  void begin() noexcept
  {
    auto before = waiting_.load();
    while (!waiting_.compare_exchange_weak(before, before < one ? one | now() : before + one)) {}
  }
  void end() noexcept
  {
    auto before = waiting_.load();
    auto until  = now();  // after what it is compared with
    while (!waiting_.compare_exchange_weak(before, ((before & ~times) - one) | until)) {
      until = now();
    }
    ns_.fetch_add((until - before) & times, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> waiting_{0};
  std::atomic<std::uint64_t> ns_{0};
};

}  // namespace rmm_uvm
