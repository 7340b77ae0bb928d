// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "board_file.hpp"

#include <rmm_uvm/residency/budget_sharing.hpp>
#include <rmm_uvm/residency/harvest_rule.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>

namespace rmm_uvm::ipc {

/** @brief Blocks that a word can count: 8 PiB of them. */
inline constexpr board_word most_blocks = 0xffff'ffff;

[[nodiscard]] constexpr board_word blocks_of(std::size_t bytes) noexcept
{
  return std::min<board_word>(bytes / va_block_bytes, most_blocks);
}

[[nodiscard]] constexpr std::size_t bytes_of(board_word blocks) noexcept
{
  return static_cast<std::size_t>(blocks & most_blocks) * va_block_bytes;
}

/** @brief What an owner says of a device: blocks in the low half, two flags at the top. */
struct offer_word {
  static constexpr board_word offers_bit = board_word{1} << 63U;
  static constexpr board_word busy_bit   = board_word{1} << 62U;

  bool offers{false};
  bool busy{false};
  std::size_t bytes{0};

  [[nodiscard]] static constexpr offer_word of(board_word word) noexcept
  {
    return {(word & offers_bit) != 0, (word & busy_bit) != 0, bytes_of(word)};
  }
  [[nodiscard]] constexpr board_word word() const noexcept
  {
    return blocks_of(bytes) | (offers ? offers_bit : 0) | (busy ? busy_bit : 0);
  }
};

/** @brief What a claimant has of a device: claimed blocks in the high half, coming ones below. */
[[nodiscard]] constexpr harvest_holding holding_of(board_word word) noexcept
{
  auto const claimed = bytes_of(word >> 32U);
  return {claimed, std::min(claimed, bytes_of(word))};  // whatever another process wrote there
}
[[nodiscard]] constexpr board_word word_of(harvest_holding holding) noexcept
{
  return blocks_of(holding.claimed_bytes) << 32U | blocks_of(holding.coming_bytes);
}

/** @brief What a budget says of a device: two words, each of which is whole. */
struct share_words {
  static constexpr board_word shares_bit = board_word{1} << 63U;
  static constexpr board_word most_there = 0x7fff'ffff;

  board_word wants{0};  // blocks in the low half, those there above, a flag at the top
  board_word holds{0};  // at most in the high half, at least below

  [[nodiscard]] static constexpr share_words of(budget_share const& share) noexcept
  {
    auto const there = std::min(blocks_of(share.there_bytes), most_there);
    return {shares_bit | there << 32U | blocks_of(share.wanted_bytes),
            blocks_of(share.most_bytes) << 32U | blocks_of(share.least_bytes)};
  }
  [[nodiscard]] constexpr bool shares() const noexcept { return (wants & shares_bit) != 0; }
  [[nodiscard]] constexpr budget_share share() const noexcept
  {
    auto const most  = bytes_of(holds >> 32U);
    auto const least = std::min(most, bytes_of(holds));
    auto const there = bytes_of((wants & ~shares_bit) >> 32U);  // 0: an older version says nothing
    return {bytes_of(wants), least, most, std::clamp(there, least, most)};
  }
};

[[nodiscard]] inline board_word load(board_word& word) noexcept
{
  return std::atomic_ref{word}.load();
}

/** @brief Replaces a word by what `change` makes of it; several threads of its process may. */
template <typename Change>
void update(board_word& word, Change const& change) noexcept
{
  std::atomic_ref shared{word};
  auto before = shared.load();
  while (!shared.compare_exchange_weak(before, change(before))) {}
}

/**
 * @brief Erases a board of an older version, word by word: its magic last, and its version before.
 *
 * Whoever is killed meanwhile leaves an older board still, which the next one begins anew, or one
 * that is empty.
 */
template <typename Erase>
void erase_board(std::span<board_word> words, Erase const& erase)
{
  std::for_each(words.rbegin(), words.rend(), erase);
}

[[nodiscard]] inline std::array<board_word, 2> words_of(device_uuid const& device) noexcept
{
  return std::bit_cast<std::array<board_word, 2>>(device);
}

}  // namespace rmm_uvm::ipc
