// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/sim/page_set.hpp>

#include <algorithm>
#include <cstdint>

namespace rmm_uvm::sim {

/**
 * @brief Visits the blocks that a span of pages covers, upwards, until one visit fails.
 * @param visit takes a block's number and the pages of it, returns a status
 */
template <typename span_type, typename visitor>
status each_block(span_type const& span, visitor&& visit)
{
  for (auto first = span.first_page; first < span.last_page;) {
    auto const index = first / pages_per_block;
    auto const end   = std::min<std::uint64_t>(span.last_page, (index + 1) * pages_per_block);
    auto const done =
      visit(span.base_block + static_cast<std::uint32_t>(index),
            page_set::range(first - index * pages_per_block, end - index * pages_per_block));
    if (!done.ok()) { return done; }
    first = end;
  }
  return {};
}

}  // namespace rmm_uvm::sim
