// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/** @brief What is known at one moment about harvested memory of one device. */
struct harvest_claims {
  bool offered{false};           ///< a program on the device says how much others may hold
  std::size_t offered_bytes{0};  ///< that, the least of several
  std::size_t claimed_bytes{0};  ///< held by all claimants together
  std::size_t coming_bytes{0};   ///< of these, not there yet: still free as the driver sees it
};

/** @brief What one claimant has of one device. */
struct harvest_holding {
  std::size_t claimed_bytes{0};  ///< granted and not given back
  std::size_t coming_bytes{0};   ///< of these, not there yet

  /** @brief With so much more granted. */
  [[nodiscard]] constexpr harvest_holding claimed(std::size_t bytes) const noexcept
  {
    return {claimed_bytes + bytes, coming_bytes + bytes};
  }
  /** @brief With so much of what was to come there. */
  [[nodiscard]] constexpr harvest_holding placed(std::size_t bytes) const noexcept
  {
    return {claimed_bytes, coming_bytes - std::min(coming_bytes, bytes)};
  }
  /** @brief Without so much of what was to come. */
  [[nodiscard]] constexpr harvest_holding cancelled(std::size_t bytes) const noexcept
  {
    auto const gone = std::min(coming_bytes, bytes);
    return {claimed_bytes - gone, coming_bytes - gone};
  }
  /** @brief Without so much of what is there; more than that was to come. */
  [[nodiscard]] constexpr harvest_holding released(std::size_t bytes) const noexcept
  {
    auto const left = claimed_bytes - std::min(claimed_bytes, bytes);
    return {left, std::min(coming_bytes, left)};
  }
};

/** @brief `bytes` less what exceeds whole blocks. */
[[nodiscard]] constexpr std::size_t whole_blocks(std::size_t bytes) noexcept
{
  return bytes - bytes % va_block_bytes;
}

/** @brief `from` less `what`, not below 0. */
[[nodiscard]] constexpr std::size_t less(std::size_t from, std::size_t what) noexcept
{
  return from - std::min(from, what);
}

/**
 * @brief How much of `wanted_bytes` a claimant gets.
 *
 * What is free there, less what programs there shall find free and what is claimed already and has
 * yet to come; and where somebody offers, at most what is left of the offer. The offer alone would
 * not do: whoever made it knows nothing of a stranger's memory on the same device.
 * @return whole blocks, at most `wanted_bytes`
 */
[[nodiscard]] constexpr std::size_t granted_bytes(std::size_t wanted_bytes,
                                                  harvest_claims const& now,
                                                  std::size_t free_bytes,
                                                  std::size_t reserve_bytes) noexcept
{
  auto const idle_bytes = less(less(free_bytes, reserve_bytes), now.coming_bytes);
  auto const left =
    now.offered ? std::min(idle_bytes, less(now.offered_bytes, now.claimed_bytes)) : idle_bytes;
  return whole_blocks(std::min(wanted_bytes, left));
}

/**
 * @brief How much all claimants together have to give back.
 * @param shortage_bytes what the device's free memory lacks to its reserve
 */
[[nodiscard]] constexpr std::size_t excess_bytes(harvest_claims const& now,
                                                 std::size_t shortage_bytes) noexcept
{
  auto const over = now.offered ? less(now.claimed_bytes, now.offered_bytes) : 0;
  return std::min(now.claimed_bytes, std::max(over, shortage_bytes));
}

/**
 * @brief One claimant's share of an excess, in proportion to what it holds.
 *
 * Rounded up to blocks, so that the shares of all are together at least the excess.
 * @param held_bytes its claims, whole blocks
 * @param claimed_bytes those of all
 * @return whole blocks, at most `held_bytes`
 */
[[nodiscard]] constexpr std::size_t give_back_bytes(std::size_t held_bytes,
                                                    std::size_t claimed_bytes,
                                                    std::size_t excess) noexcept
{
  if (held_bytes == 0 || excess == 0) { return 0; }
  if (excess >= claimed_bytes) { return held_bytes; }
  // In blocks. One holding has less than 2^32, all of them together may have more: what is divided
  // by is kept below that, and the product fits. Rounding makes a share larger, never smaller.
  std::uint64_t const held = held_bytes / va_block_bytes;
  std::uint64_t claimed    = std::max<std::uint64_t>(claimed_bytes / va_block_bytes, 1);
  std::uint64_t over       = (excess - 1) / va_block_bytes + 1;
  while (claimed >> 32U != 0) {
    claimed >>= 1U;
    over = (over + 1) >> 1U;
  }
  return static_cast<std::size_t>(std::min(held, (held * over + claimed - 1) / claimed)) *
         va_block_bytes;
}

}  // namespace rmm_uvm
