// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/monitor/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rmm_uvm::monitor {

/** @brief What `sample_ring::read` found. */
struct ring_read {
  std::uint64_t first_sequence{0};  ///< of the first sample copied, or that would come next
  std::size_t count{0};             ///< samples copied
};

/**
 * @brief The newest samples, each with a sequence number: 0 for the first one ever.
 *
 * Memory is reserved at once and touched as samples come; a full ring drops its oldest. Not
 * thread-safe.
 */
class sample_ring {
 public:
  /** @param capacity samples, at least 1 @throws std::bad_alloc */
  explicit sample_ring(std::size_t capacity);

  /** @brief Appends; never allocates. */
  void push(sample const& one) noexcept;

  /** @brief Sequence number of the oldest sample that is still here. */
  [[nodiscard]] std::uint64_t first_sequence() const noexcept { return next_ - samples_.size(); }
  /** @brief Sequence number that the next sample will have. */
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_; }
  /** @brief How many samples there are from `since` on. */
  [[nodiscard]] std::size_t count(std::uint64_t since) const noexcept;

  /**
   * @brief Copies samples from sequence number `since` on, oldest first, as many as fit.
   * @param since those that were dropped are left out: `first_sequence` tells
   */
  [[nodiscard]] ring_read read(std::uint64_t since, std::span<sample> into) const noexcept;

 private:
  std::size_t capacity_;
  std::vector<sample> samples_;
  std::uint64_t next_{0};
};

}  // namespace rmm_uvm::monitor
