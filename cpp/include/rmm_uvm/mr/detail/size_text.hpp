// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace rmm_uvm::mr::detail {

/** @brief Returns a size as messages have it: "512 bytes", "512.0 MiB", "1.50 GiB" */
[[nodiscard]] inline std::string as_text(std::size_t bytes)
{
  if (bytes < (1U << 20U)) { return std::to_string(bytes) + " bytes"; }
  std::array<char, 32> text{};
  auto const mib    = static_cast<double>(bytes) / static_cast<double>(1U << 20U);
  bool const in_gib = mib >= 1024.0;
  static_cast<void>(std::snprintf(
    text.data(), text.size(), in_gib ? "%.2f GiB" : "%.1f MiB", in_gib ? mib / 1024.0 : mib));
  return text.data();
}

}  // namespace rmm_uvm::mr::detail
