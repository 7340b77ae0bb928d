// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace rmm_uvm {

/**
 * @brief How far ahead expected uses are fetched; learns from what came late and what left early.
 *
 * Late: a use finds what was expected still away; looking further, the link had begun earlier.
 * Early: what was fetched ahead leaves before its use, so it took room in vain, and the way twice.
 * A step of a quarter is taken once as much was used as is looked ahead: shorter for what left
 * early, else longer for what came late, and none where there was less than a part of either.
 * Pure and deterministic; not thread-safe.
 */
class look_ahead {
 public:
  // Of what is used, too little to act on. What leaves early costs both ways.
  static constexpr std::size_t ignored_early_part = 32;
  static constexpr std::size_t ignored_late_part  = 8;

  /** @brief One that never changes. */
  explicit look_ahead(std::size_t bytes) noexcept
    : bytes_{bytes}, least_bytes_{bytes}, most_bytes_{bytes}
  {
  }
  /** @brief One that begins at `bytes`, and stays from `least_bytes` to `most_bytes`. */
  look_ahead(std::size_t bytes, std::size_t least_bytes, std::size_t most_bytes) noexcept
    : bytes_{std::clamp(bytes, least_bytes, std::max(least_bytes, most_bytes))},
      least_bytes_{least_bytes},
      most_bytes_{std::max(least_bytes, most_bytes)}
  {
  }

  /** @brief How far it is now. */
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /** @brief So much left before its use. */
  void left_early(std::size_t bytes) noexcept { early_bytes_ += bytes; }

  /** @brief So much was used, of which `late_bytes` were expected and away. */
  void used(std::size_t bytes, std::size_t late_bytes) noexcept
  {
    used_bytes_ += bytes;
    late_bytes_ += late_bytes;
    if (used_bytes_ < bytes_) { return; }
    if (early_bytes_ > used_bytes_ / ignored_early_part) {
      bytes_ = std::max(bytes_ - bytes_ / 4, least_bytes_);
    } else if (late_bytes_ > used_bytes_ / ignored_late_part) {
      bytes_ = std::min(bytes_ + bytes_ / 4, most_bytes_);
    }
    used_bytes_ = late_bytes_ = early_bytes_ = 0;
  }

 private:
  std::size_t bytes_;
  std::size_t least_bytes_;
  std::size_t most_bytes_;
  std::size_t used_bytes_{0};
  std::size_t late_bytes_{0};
  std::size_t early_bytes_{0};
};

}  // namespace rmm_uvm
