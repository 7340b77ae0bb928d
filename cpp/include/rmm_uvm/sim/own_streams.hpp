// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/stream.hpp>

#include <array>
#include <cstddef>

namespace rmm_uvm::sim {

/** @brief The simulated device's own streams, and the lane of each. It touches nothing else. */
class own_streams {
 public:
  /** @param lanes whether programs of the node have any */
  explicit own_streams(bool lanes) noexcept : lanes_{lanes} {}

  /** @brief A name that no stream of a program has. */
  [[nodiscard]] stream_handle name(own_stream_use which) noexcept
  {
    return &names_[static_cast<std::size_t>(which)];
  }
  /** @brief The lane of a stream. All streams of the program share the first lane. */
  [[nodiscard]] unsigned lane_of(stream_handle stream) const noexcept
  {
    if (!lanes_) { return 0; }
    auto const* const name = static_cast<char const*>(stream);
    for (unsigned number = 0; number < own_stream_count; ++number) {
      if (name == &names_[number]) { return number + 1; }
    }
    return 0;
  }

 private:
  bool lanes_;
  std::array<char, own_stream_count> names_{};  // their addresses are the names
};

}  // namespace rmm_uvm::sim
