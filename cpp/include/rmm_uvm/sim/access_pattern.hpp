// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm::sim {

/** @brief How a kernel goes over a range of memory. */
enum class pattern_kind : std::uint8_t {
  sequential,     ///< every page once, upwards
  strided,        ///< every `stride_pages`-th page, then from the next one, until all were seen
  random,         ///< `count` pages, each equally likely
  zipf,           ///< `count` pages, a few of them most often, scattered over the range
  pointer_chase,  ///< `count` pages along a cycle of all, far apart; each known when the last came
  hash_join_probe,  ///< `count` buckets of a hash table: random, some two pages long
  recorded          ///< pages as listed
};

/** @brief A pattern and its parameters; those that a kind does not name are ignored. */
struct access_pattern {
  pattern_kind kind{pattern_kind::sequential};
  std::uint64_t count{0};         ///< accesses of one page
  std::uint64_t stride_pages{1};  ///< > 0
  double exponent{1.1};           ///< of zipf, > 0: the k-th page is met k^-exponent as often
  std::uint64_t seed{0};          ///< of what is random: equal seeds, equal pages
  std::shared_ptr<std::vector<std::uint64_t> const>
    pages{};  ///< recorded: numbers within the range
};

/** @brief Consecutive pages of a range. */
struct page_run {
  std::uint64_t first{0};  ///< number within the range
  std::uint64_t count{0};  ///< > 0
};

/** @brief Goes through a pattern over a range of so many pages. */
class access_cursor {
 public:
  /** @param range_pages pages of the range, > 0 @throws std::bad_alloc */
  access_cursor(access_pattern const& pattern, std::uint64_t range_pages);

  /** @brief What is accessed next, at most `most` pages. @return false at the end */
  [[nodiscard]] bool next(std::uint64_t most, page_run& run) noexcept;

 private:
  [[nodiscard]] std::uint64_t draw() noexcept;
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;
  [[nodiscard]] std::uint64_t zipf_rank() noexcept;

  access_pattern pattern_;
  std::uint64_t range_pages_;
  std::uint64_t done_{0};    // accesses so far
  std::uint64_t place_{0};   // page, or position on the cycle
  std::uint64_t state_;      // of the generator
  double log_end_{0};        // of zipf: the logarithm of one more than there are pages
  double end_power_{1};      // of zipf: that number to the power of 1 - exponent
  std::uint64_t spread_{1};  // coprime to range_pages_: scatters ranks over the range
};

}  // namespace rmm_uvm::sim
