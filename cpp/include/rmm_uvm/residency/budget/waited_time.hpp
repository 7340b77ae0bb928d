// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rmm_uvm {

/** @brief How long requests waited, of all threads together. Takes no lock. */
class waited_time {
 public:
  /** @brief Counts the time from here to the end of a scope. */
  class scope {
   public:
    /** @param counted false: none of it */
    scope(waited_time& all, bool counted) noexcept : all_{counted ? &all : nullptr}
    {
      if (all_ != nullptr) { begun_ = clock::now(); }
    }
    ~scope()
    {
      if (all_ != nullptr) { all_->add(clock::now() - begun_); }
    }
    scope(scope const&)            = delete;
    scope& operator=(scope const&) = delete;
    scope(scope&&)                 = delete;
    scope& operator=(scope&&)      = delete;

   private:
    using clock = std::chrono::steady_clock;

    waited_time* all_;
    clock::time_point begun_;
  };

  [[nodiscard]] std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }

 private:
  void add(std::chrono::nanoseconds more) noexcept
  {
    ns_.fetch_add(static_cast<std::uint64_t>(more.count()), std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> ns_{0};
};

}  // namespace rmm_uvm
