// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/density_prefetcher.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace rmm_uvm::sim {
namespace {

/** @brief The 64 KiB big pages that hold any of `pages`. */
[[nodiscard]] page_set grown(page_set const& pages) noexcept
{
  static_assert(pages_per_big_page == 16);
  constexpr std::uint64_t lowest = 0x0001'0001'0001'0001;
  page_set result;
  for (std::size_t index = 0; index < page_set::word_count; ++index) {
    auto bits = pages.word(index);
    bits |= bits >> 8U;
    bits |= bits >> 4U;
    bits |= bits >> 2U;
    bits |= bits >> 1U;
    // The lowest bit of each 16 is set now if any of the 16 was; spread it over them.
    result.set_word(index, (bits & lowest) * 0xFFFFU);
  }
  return result;
}

/** @brief Pages of a set, counted by aligned part: level 0 is the block, each next halves it. */
class part_counts {
 public:
  explicit part_counts(page_set const& pages) noexcept : pages_{pages}
  {
    for (std::size_t word = 0; word < page_set::word_count; ++word) {
      words_[word] = static_cast<std::size_t>(std::popcount(pages.word(word)));
    }
  }
  /** @param size a power of two, 1..512 @param first a multiple of it */
  [[nodiscard]] std::size_t of(std::size_t first, std::size_t size) const noexcept
  {
    if (size < 64) {
      auto const bits =
        (pages_.word(first / 64) >> (first % 64)) & ((std::uint64_t{1} << size) - 1);
      return static_cast<std::size_t>(std::popcount(bits));
    }
    std::size_t sum = 0;
    for (auto word = first / 64; word < (first + size) / 64; ++word) {
      sum += words_[word];
    }
    return sum;
  }

 private:
  page_set const& pages_;
  std::array<std::size_t, page_set::word_count> words_{};
};

}  // namespace

page_set served_with(page_set const& resident,
                     page_set const& faulted,
                     std::size_t page_count,
                     driver_settings const& settings) noexcept
{
  if (!settings.prefetch || faulted.count() < settings.min_faults) { return faulted; }
  auto const whole = page_set::range(0, page_count);
  // A region is never more than full, so at 100 nothing is added, not even the big page.
  if (settings.prefetch_threshold >= 100) { return faulted; }
  auto const asked = (resident | grown(faulted)) & whole;
  part_counts const counts{asked};
  page_set added;
  auto rest = faulted;
  for (auto page = rest.next(0); page < pages_per_block; page = rest.next(page)) {
    // From the largest part that holds the page down to its big page, which is full.
    auto size  = pages_per_block;
    auto first = std::size_t{0};
    auto last  = page_count;
    while (size > pages_per_big_page &&
           counts.of(first, size) * 100 <= (last - first) * settings.prefetch_threshold) {
      size /= 2;
      first = page / size * size;
      last  = std::min(first + size, page_count);
    }
    auto const part = page_set::range(first, last);
    added |= part;
    rest -= part;
  }
  return added | faulted;
}

page_set prefetched_with(page_set const& resident,
                         page_set const& faulted,
                         std::size_t page_count,
                         driver_settings const& settings) noexcept
{
  return served_with(resident, faulted, page_count, settings) - resident;
}

}  // namespace rmm_uvm::sim
