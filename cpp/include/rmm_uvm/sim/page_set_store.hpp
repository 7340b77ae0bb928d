// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/sim/page_set.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm::sim {

/**
 * @brief Many page sets in little memory: those with no page, or with all of a block's, take none.
 *
 * A block of 512 pages would need 64 bytes for each property of its pages. In most blocks the
 * pages are alike; only mixed sets are kept, 64 bytes each.
 */
class page_set_store {
 public:
  /** @brief Names a set; 0 is the empty one. */
  using handle                  = std::uint32_t;
  static constexpr handle empty = 0;
  static constexpr handle full  = 1;

  /** @param whole all pages of the block that the handle belongs to */
  [[nodiscard]] page_set load(handle which, page_set const& whole) const noexcept
  {
    if (which == empty) { return {}; }
    return which == full ? whole : sets_[which - first_mixed];
  }

  /** @brief Changes what a handle names. @throws std::bad_alloc and changes nothing */
  void store(handle& which, page_set const& pages, page_set const& whole)
  {
    auto const is_empty = pages.none();
    if (is_empty || pages == whole) {
      release(which);
      which = is_empty ? empty : full;
      return;
    }
    if (which < first_mixed) { which = take(); }
    sets_[which - first_mixed] = pages;
  }

  /** @brief Forgets a set. */
  void release(handle which) noexcept
  {
    if (which >= first_mixed) {
      sets_[which - first_mixed].set_word(0, free_);
      free_ = which;
    }
  }

  /** @brief Bytes that it takes. */
  [[nodiscard]] std::size_t bytes() const noexcept { return sets_.capacity() * sizeof(page_set); }

 private:
  static constexpr handle first_mixed = 2;

  [[nodiscard]] handle take()
  {
    if (free_ == empty) {
      sets_.emplace_back();
      return static_cast<handle>(sets_.size() - 1 + first_mixed);
    }
    auto const taken = free_;
    free_            = static_cast<handle>(sets_[taken - first_mixed].word(0));
    return taken;
  }

  std::vector<page_set> sets_;
  handle free_{empty};  // chain of unused sets, through their first words
};

}  // namespace rmm_uvm::sim
