// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/planned_answers.hpp>

#include <algorithm>

namespace rmm_uvm::sim {

std::optional<status> planned_answers::met_by(std::string_view call) noexcept
{
  auto const it = std::find_if(
    planned_.begin(), planned_.end(), [&](planned const& each) { return each.call == call; });
  if (it == planned_.end()) { return std::nullopt; }
  if (it->skip > 0) {
    --it->skip;
    return std::nullopt;
  }
  auto const given = it->given;
  planned_.erase(it);
  return given;
}

std::size_t planned_answers::cancel() noexcept
{
  auto const unmet = planned_.size();
  planned_.clear();
  return unmet;
}

}  // namespace rmm_uvm::sim
