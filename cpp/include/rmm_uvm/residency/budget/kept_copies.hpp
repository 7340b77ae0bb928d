// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/budget/beside_advice.hpp>
#include <rmm_uvm/residency/budget/block_lists.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/early_copy_worth.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmm_uvm {

/**
 * @brief Has the host keep its copy of what comes to be read, so that it leaves without a copy.
 *
 * Such a block is read mostly while it is on the device. No place is preferred: of two copies the
 * driver keeps the host's then. Its page on the host is there anyway, until the memory is freed.
 * Nothing is ever discarded: a page that is written meanwhile has one place again, and is copied
 * when its block leaves. It is a block of one allocation, all of which was announced to be read,
 * and of which no use was announced that may write it. Methods that take a view give up the lock
 * during calls, with the blocks marked busy; `begin`, `written` and `leave_to_host` are called
 * without the lock.
 */
class kept_copies {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    beside_advice& advice;
  };
  explicit kept_copies(parts const& all) noexcept
    : with_{all},
      keeps_{all.settings.keep_copies && all.settings.fetch &&
             all.driver.info().host_pages.available},
      worth_{std::max(all.settings.budget_bytes / early_trust_part, va_block_bytes)}
  {
  }

  /** @brief Whether the host is to keep its copy when a block comes from there. */
  [[nodiscard]] bool wanted(block_record const& block) const noexcept
  {
    return leaves_uncopied(block) && block.place == block_place::host && !block.discarded;
  }
  /** @brief Whether the host may get its copy of a block that is on the device. */
  [[nodiscard]] bool may_copy(block_record const& block) const noexcept
  {
    return leaves_uncopied(block) && block.place == block_place::device && !block.discarded &&
           !block.copied && !block.dead();
  }
  /** @brief Whether a block is copied at most once more, however often it leaves. */
  [[nodiscard]] bool leaves_uncopied(block_record const& block) const noexcept
  {
    return keeps_ && block.only_read && !block.advised();
  }
  /** @brief Whether any copy is kept at all; not without page tables, nor once advice failed. */
  [[nodiscard]] bool keeps() const noexcept { return keeps_; }
  /** @brief Whether any block on the device has a copy on the host; takes no lock. */
  [[nodiscard]] bool any() const noexcept { return kept_bytes_ != 0; }
  /** @brief Of so much on the device the host has a copy. */
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_; }
  /** @brief The host is about to get copies, or has them: see `are_made`. */
  void are_made(bool now) noexcept { made_ += now ? 1 : -1; }
  /** @brief Whether the host gets copies now of what is on the device: it cannot leave yet. */
  [[nodiscard]] bool any_are_made() const noexcept { return made_ > 0; }
  /** @brief See `early_copy_worth::pays`. */
  [[nodiscard]] bool early_ones_pay(std::uint64_t used_bytes) noexcept
  {
    return worth_.pays(used_bytes);
  }

  /**
   * @brief Has the host keep what comes next.
   * @return whether it does; else it keeps nothing from now on, and all comes as it would
   */
  [[nodiscard]] bool begin(range_list ranges) noexcept;
  /** @brief Notes of a block that is to come that the host is to keep its copy. */
  void note_kept(block_record& block, memory_range whole) noexcept;
  /** @brief Notes that there is room for so many bytes of them: they come now. */
  void note_coming(std::size_t bytes) noexcept { awaited_bytes_ -= bytes; }
  /**
   * @brief Pages of ranges of which the host's copy is none any more: they were written
   * unannounced.
   */
  [[nodiscard]] std::vector<memory_range> written(range_list ranges) noexcept;
  /** @brief Of ranges on the device only the host's copy stays. */
  status leave_to_host(range_list ranges) noexcept;
  /** @brief Notes that a block left by its copy. */
  void note_left(block_record& block, memory_range whole) noexcept;
  /** @brief Notes that a block has one copy again, or that its slab goes. */
  void note_ended(block_record& block, memory_range whole) noexcept;
  /** @brief Of blocks on the device only that copy stays: they may be written, or are freed. */
  void end_here(ledger_view& view, range_list ranges) noexcept;
  /** @brief The same of all blocks. */
  void end_all(ledger_view& view);

  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept
  {
    std::size_t const kept_bytes = kept_bytes_;
    told.kept_copy_bytes         = kept_bytes - std::min(kept_bytes, awaited_bytes_);
  }

 private:
  static constexpr std::size_t early_trust_part = 4;  // of the budget, may be copied in vain

  void end_here(ledger_view& view, block_list& blocks);

  parts with_;
  std::atomic<bool> keeps_;
  std::atomic<std::size_t> kept_bytes_{0};  // changed under the lock
  std::size_t awaited_bytes_{0};            // of these, what there is no room for yet
  int made_{0};                             // calls under way that make early copies
  early_copy_worth worth_;
};

}  // namespace rmm_uvm
