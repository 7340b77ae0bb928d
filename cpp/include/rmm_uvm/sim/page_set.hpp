// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm::sim {

inline constexpr std::size_t pages_per_block = va_block_bytes / page_bytes;  ///< 512

/** @brief A set of the 4 KiB pages of one block: one bit each. */
class page_set {
 public:
  static constexpr std::size_t word_count = pages_per_block / 64;

  constexpr page_set() noexcept = default;

  /** @brief Pages [first, last). */
  [[nodiscard]] static constexpr page_set range(std::size_t first, std::size_t last) noexcept
  {
    page_set result;
    for (std::size_t word = 0; word < word_count; ++word) {
      result.words_[word] = below(last, word) & ~below(first, word);
    }
    return result;
  }

  [[nodiscard]] constexpr bool test(std::size_t page) const noexcept
  {
    return ((words_[page / 64] >> (page % 64)) & 1U) != 0;
  }
  constexpr void set(std::size_t page) noexcept
  {
    words_[page / 64] |= std::uint64_t{1} << (page % 64);
  }
  [[nodiscard]] constexpr bool any() const noexcept
  {
    std::uint64_t sum = 0;
    for (auto const word : words_) {
      sum |= word;
    }
    return sum != 0;
  }
  [[nodiscard]] constexpr bool none() const noexcept { return !any(); }
  [[nodiscard]] constexpr std::size_t count() const noexcept
  {
    std::size_t sum = 0;
    for (auto const word : words_) {
      sum += static_cast<std::size_t>(std::popcount(word));
    }
    return sum;
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return count() * page_bytes; }

  /** @brief Number of stretches of pages that lie side by side: copies that are needed. */
  [[nodiscard]] constexpr std::size_t runs() const noexcept
  {
    std::size_t sum     = 0;
    std::uint64_t carry = 0;
    for (auto const word : words_) {
      sum += static_cast<std::size_t>(std::popcount(word & ~((word << 1U) | carry)));
      carry = word >> 63U;
    }
    return sum;
  }

  /** @brief The first page at or after `from`; `pages_per_block` if there is none. */
  [[nodiscard]] constexpr std::size_t next(std::size_t from) const noexcept
  {
    if (from >= pages_per_block) { return pages_per_block; }
    auto index = from / 64;
    auto word  = words_[index] & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
      if (++index == word_count) { return pages_per_block; }
      word = words_[index];
    }
    return index * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }

  /** @brief The first `most` of its pages. */
  [[nodiscard]] constexpr page_set first(std::size_t most) const noexcept
  {
    page_set result;
    for (std::size_t index = 0; index < word_count && most > 0; ++index) {
      auto word          = words_[index];
      auto const in_word = static_cast<std::size_t>(std::popcount(word));
      if (in_word > most) {
        for (auto surplus = in_word - most; surplus > 0; --surplus) {
          word ^= std::bit_floor(word);
        }
        result.words_[index] = word;
        return result;
      }
      result.words_[index] = word;
      most -= in_word;
    }
    return result;
  }

  /** @brief 64 pages as bits, from page 64 x `index` on. */
  [[nodiscard]] constexpr std::uint64_t word(std::size_t index) const noexcept
  {
    return words_[index];
  }
  constexpr void set_word(std::size_t index, std::uint64_t bits) noexcept { words_[index] = bits; }

  constexpr page_set& operator|=(page_set const& other) noexcept
  {
    for (std::size_t word = 0; word < word_count; ++word) {
      words_[word] |= other.words_[word];
    }
    return *this;
  }
  constexpr page_set& operator&=(page_set const& other) noexcept
  {
    for (std::size_t word = 0; word < word_count; ++word) {
      words_[word] &= other.words_[word];
    }
    return *this;
  }
  /** @brief Takes the pages of `other` away. */
  constexpr page_set& operator-=(page_set const& other) noexcept
  {
    for (std::size_t word = 0; word < word_count; ++word) {
      words_[word] &= ~other.words_[word];
    }
    return *this;
  }
  friend constexpr page_set operator|(page_set a, page_set const& b) noexcept { return a |= b; }
  friend constexpr page_set operator&(page_set a, page_set const& b) noexcept { return a &= b; }
  friend constexpr page_set operator-(page_set a, page_set const& b) noexcept { return a -= b; }
  friend constexpr bool operator==(page_set const&, page_set const&) noexcept = default;

 private:
  /** @brief Bits of a word that stand for pages before `page`. */
  [[nodiscard]] static constexpr std::uint64_t below(std::size_t page, std::size_t word) noexcept
  {
    auto const begin = word * 64;
    if (page <= begin) { return 0; }
    if (page >= begin + 64) { return ~std::uint64_t{0}; }
    return (std::uint64_t{1} << (page - begin)) - 1;
  }

  std::array<std::uint64_t, word_count> words_{};
};

}  // namespace rmm_uvm::sim
