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

}  // namespace rmm_uvm
