// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/neighbor_paths.hpp>

namespace rmm_uvm {

double staged_fraction(link_rates const& rates) noexcept
{
  if (rates.to_device_bytes_per_second == 0 || rates.from_neighbor_bytes_per_second == 0) {
    return 0;
  }
  auto const own    = static_cast<double>(rates.to_device_bytes_per_second);
  auto const beside = static_cast<double>(rates.from_neighbor_bytes_per_second);
  auto const staged = own * beside / (own + beside);  // one way after the other
  return staged / (own + staged);
}

bool is_staged(std::size_t piece, link_rates const& rates) noexcept
{
  auto const fraction = staged_fraction(rates);
  auto const before   = static_cast<std::size_t>(static_cast<double>(piece) * fraction);
  return static_cast<std::size_t>(static_cast<double>(piece + 1) * fraction) > before;
}

}  // namespace rmm_uvm
