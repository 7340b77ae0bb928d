// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fstream>
#include <istream>
#include <string>

namespace rmm_uvm::cuda {

/** @brief Bytes after `MemAvailable:` in text like that of /proc/meminfo; 0 where it has none. */
[[nodiscard]] inline std::size_t available_bytes_in(std::istream& meminfo)
{
  std::string word;
  std::size_t kibibytes = 0;
  while (meminfo >> word) {
    if (word == "MemAvailable:" && meminfo >> kibibytes) { return kibibytes << 10U; }
  }
  return 0;
}

/** @brief Host memory that programs can take, what the kernel would reclaim included; 0 unknown. */
[[nodiscard]] inline std::size_t available_host_bytes() noexcept
try {
  std::ifstream meminfo{"/proc/meminfo"};
  return available_bytes_in(meminfo);
} catch (...) {
  return 0;
}

}  // namespace rmm_uvm::cuda
