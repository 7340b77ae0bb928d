// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/moving_pieces.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace rmm_uvm {

using range_list = std::span<memory_range const>;  ///< of one request, or of one call
using block_list = std::vector<viewed_block>;      ///< valid as long as their slabs are
using claim_list = std::vector<claimed_block>;     ///< ascending, each block once

inline constexpr std::size_t any_length = std::numeric_limits<std::size_t>::max();

/** @brief Bytes of all blocks together. */
[[nodiscard]] std::size_t bytes_of(block_list const& blocks) noexcept;

/** @brief Bytes of those blocks that were not on the device, as far as is known. */
[[nodiscard]] std::size_t uncounted_bytes(claim_list const& blocks) noexcept;

/** @brief Leaves each block once, ascending: ranges share blocks. */
void make_distinct(block_list& blocks);

/** @brief Has a call about the blocks be under way, or be over. Takes no memory. */
void set_busy(block_list const& blocks, bool busy) noexcept;

/** @brief Adjacent blocks of a slab in pieces of at most `most_bytes`, ascending. */
[[nodiscard]] std::vector<memory_range> joined(ledger_view const& view,
                                               block_list blocks,
                                               std::size_t most_bytes);

/**
 * @brief Whether a call about a block of a range is under way.
 * @param to_read it is only to be read, which a call that copies it does not mind
 */
[[nodiscard]] bool is_under_way(ledger_view& view, memory_range range, bool to_read = false);

/**
 * @brief Has the blocks of a request stay where they are (1), or lets go of them (-1).
 *
 * A slab that went meanwhile, under somebody who uses it, took its holds along.
 */
void hold(ledger_view& view, range_list wanted, int by);

}  // namespace rmm_uvm
