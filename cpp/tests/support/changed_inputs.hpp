// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rmm_uvm::tests {

using byte_string = std::vector<std::uint8_t>;

/**
 * @brief What is kept of a fuzzer's target, in the order of names: its seeds, and what grew from
 * them where that reaches more; tests/fuzz/ made both.
 */
[[nodiscard]] inline std::vector<byte_string> kept_inputs(std::string const& target)
{
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::path const folder : {RMM_UVM_FUZZ "/corpus/", RMM_UVM_FUZZ "/grown/"}) {
    if (!std::filesystem::is_directory(folder / target)) { continue; }
    for (auto const& each : std::filesystem::directory_iterator{folder / target}) {
      paths.push_back(each.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<byte_string> found;
  for (auto const& path : paths) {
    std::ifstream file{path, std::ios::binary};
    found.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
  }
  EXPECT_GE(found.size(), 5U) << target;
  return found;
}

/** @brief A number as it stands in data, at a place; 0 where the data end before. */
template <typename Number>
[[nodiscard]] Number number_at(byte_string const& data, std::size_t place)
{
  Number found{0};
  if (place + sizeof(found) <= data.size()) {
    std::memcpy(&found, data.data() + place, sizeof(found));
  }
  return found;
}

/** @brief A number at which something may end, in one of the ways in which they are written. */
[[nodiscard]] inline byte_string edge_number(std::mt19937_64& random)
{
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  constexpr std::array<std::uint64_t, 12> edges{0,
                                                1,
                                                0x7f,
                                                0x80,
                                                0xffff,
                                                0x7fff'ffff,
                                                0xffff'ffff,
                                                1ULL << 53U,
                                                most >> 8U,
                                                most >> 1U,
                                                most,
                                                (most >> 1U) + 1};
  auto value = edges[random() % edges.size()];
  byte_string found;
  if (random() % 2 == 0) {  // as the trace format has them
    for (; value >= 0x80; value >>= 7U) {
      found.push_back(static_cast<std::uint8_t>(value | 0x80U));
    }
    found.push_back(static_cast<std::uint8_t>(value));
    return found;
  }
  found.resize(std::size_t{1} << random() % 4);
  std::memcpy(found.data(), &value, found.size());
  return found;
}

/** @brief Data with one random change: cut off, with other bits, with more bytes or a number. */
[[nodiscard]] inline byte_string changed(byte_string data, std::mt19937_64& random)
{
  auto const place = random() % (data.size() + 1);
  auto const at    = data.begin() + static_cast<std::ptrdiff_t>(place);
  switch (random() % 5) {
    case 0: data.resize(place); break;
    case 1:
      if (place < data.size()) { *at ^= static_cast<std::uint8_t>(1U << random() % 8); }
      break;
    case 2: {
      byte_string more(1 + random() % 8);
      std::generate(
        more.begin(), more.end(), [&random] { return static_cast<std::uint8_t>(random()); });
      data.insert(at, more.begin(), more.end());
      break;
    }
    default: {
      auto const number = edge_number(random);
      if (random() % 2 == 0) {
        data.insert(at, number.begin(), number.end());
      } else {
        std::copy_n(number.begin(), std::min(number.size(), data.size() - place), at);
      }
    }
  }
  return data;
}

/**
 * @brief Has data read with up to three changes, of which equal numbers give equal ones.
 * @param read gets each in a heap block of its own, just as long, so that a sanitizer sees a byte
 * too far
 */
template <typename Read>
void read_changed(byte_string const& data, int rounds, Read const& read)
{
  std::mt19937_64 random{20261};
  read(byte_string(data.begin(), data.end()));
  for (int round = 0; round < rounds; ++round) {
    auto other = data;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      other = changed(std::move(other), random);
    }
    read(byte_string(other.begin(), other.end()));
  }
}

}  // namespace rmm_uvm::tests
