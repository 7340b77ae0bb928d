// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/last_announced.hpp>

namespace rmm_uvm {

bool last_announced::names(block_record const& block) const noexcept
{
  return block.touched != never_used &&
         std::any_of(uses_.begin(), uses_.end(), [&block](uses const& each) {
           return each.first <= block.touched && block.touched <= each.last;
         });
}

bool last_announced::cover(use_tick oldest, use_tick newest) const noexcept
{
  auto from = oldest;
  while (from <= newest) {
    auto const* const that = std::find_if(uses_.begin(), uses_.end(), [from](uses const& each) {
      return each.first != never_used && each.first <= from && from <= each.last;
    });
    if (that == uses_.end()) { return false; }
    from = that->last + 1;
  }
  return true;
}

}  // namespace rmm_uvm
