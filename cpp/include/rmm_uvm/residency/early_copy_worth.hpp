// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief Whether it pays to copy blocks before they have to leave; learns from what came of it.
 *
 * Of use: the block left, and nothing was copied then. In vain: it was written or freed before. As
 * long as little more was in vain than of use, it goes on; else it rests, and what was in vain
 * is forgotten by and by. Pure and deterministic; not thread-safe.
 */
class early_copy_worth {
 public:
  /** @param trust_bytes so much more may be in vain than is of use; > 0 */
  explicit early_copy_worth(std::size_t trust_bytes) noexcept : trust_bytes_{trust_bytes} {}

  /** @brief So much of it left without being copied then. */
  void was_of_use(std::size_t bytes) noexcept
  {
    of_use_bytes_ += bytes;
    age();
  }
  /** @brief So much of it did not leave. */
  void was_in_vain(std::size_t bytes) noexcept
  {
    in_vain_bytes_ += bytes;
    age();
  }
  /** @brief Whether to go on. @param used_bytes what the program has used so far, all uses added */
  [[nodiscard]] bool pays(std::uint64_t used_bytes) noexcept
  {
    if (in_vain_bytes_ <= of_use_bytes_ + trust_bytes_) {
      rested_since_ = used_bytes;
      return true;
    }
    if (used_bytes - rested_since_ < rest * trust_bytes_) { return false; }
    in_vain_bytes_ /= 2;
    rested_since_ = used_bytes;
    return false;
  }

 private:
  static constexpr std::size_t memory =
    16;  ///< of what came of so many times the trust, half counts
  static constexpr std::size_t rest =
    64;  ///< so many times the trust is used until some is forgiven

  void age() noexcept
  {
    if (of_use_bytes_ + in_vain_bytes_ < memory * trust_bytes_) { return; }
    of_use_bytes_ /= 2;
    in_vain_bytes_ /= 2;
  }

  std::size_t trust_bytes_;
  std::size_t of_use_bytes_{0};
  std::size_t in_vain_bytes_{0};
  std::uint64_t rested_since_{0};
};

}  // namespace rmm_uvm
