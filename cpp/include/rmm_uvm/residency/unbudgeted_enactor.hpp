// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/prefetch_statistics.hpp>
#include <rmm_uvm/residency/residency_enactor.hpp>

#include <memory>

namespace rmm_uvm {

/**
 * @brief Memory without a budget: the kernel driver evicts, and what may have left is prefetched.
 *
 * Nobody counts here what of a block is live. All that is discarded is a new allocation's own, or
 * what a caller of `on_dead` answers for. The path of an allocation in a time without evictions
 * takes no lock.
 */
class unbudgeted_enactor final : public residency_enactor {
 public:
  /**
   * @param driver commands and device facts
   * @param epochs tells when residence stops being certain
   * @param ledger, adviser, counts outlive this object
   */
  unbudgeted_enactor(std::shared_ptr<uvm_driver> driver,
                     std::unique_ptr<epoch_source> epochs,
                     residency_ledger& ledger,
                     memory_adviser& adviser,
                     prefetch_counts& counts);

  /** @brief Prefetches as much of a slab as free device memory holds; `never` leaves it. */
  void on_slab(memory_range slab, stream_handle stream, prefetch_mode mode) noexcept override;
  std::size_t on_slab_free(memory_range slab) noexcept override;
  void on_slab_freed(std::size_t) noexcept override {}
  bool on_allocate(memory_range allocation,
                   stream_handle stream,
                   prefetch_mode mode) noexcept override;
  void on_reuse(carved_range const&, stream_handle, bool) noexcept override {}
  void on_untold(memory_range) noexcept override {}
  void on_free(memory_range, stream_handle, bool) noexcept override {}
  bool on_dead(std::span<memory_range const> blocks) noexcept override;
  bool drop_dead(std::span<memory_range const> blocks) noexcept override { return on_dead(blocks); }

  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept override;
  void bring(memory_range range, stream_handle stream) noexcept override;
  std::size_t evict(memory_range range, stream_handle stream) noexcept override;
  void on_advised(memory_range) noexcept override {}
  void pin(memory_range) noexcept override {}
  void unpin(memory_range) noexcept override {}

  [[nodiscard]] bool all_present() noexcept override
  {
    return ledger_.all_on_device(epochs_->current());
  }
  bool confirm_present(stream_handle) noexcept override { return false; }
  [[nodiscard]] bool confirmed_present() const noexcept override { return false; }
  [[nodiscard]] bool under_pressure() const noexcept override { return false; }
  [[nodiscard]] std::size_t budget_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::optional<residency_statistics> statistics() const noexcept override
  {
    return std::nullopt;
  }
  [[nodiscard]] live_blocks take_live_blocks(bool) noexcept override { return {}; }
  void flush() noexcept override {}
  void run_pending() noexcept override {}
  bool run_pending_piece() noexcept override { return false; }

  /** @brief The epoch now; see `epoch_source`. */
  [[nodiscard]] epoch_number current_epoch() noexcept { return epochs_->current(); }

 private:
  bool settle_doubt(memory_range allocation, stream_handle stream, epoch_number epoch);
  bool can_issue(std::size_t bytes) noexcept;
  bool may_issue(memory_range range, stream_handle stream) noexcept;
  void renew(std::span<memory_range const> ranges, stream_handle stream, epoch_number epoch);
  bool issue_prefetch(memory_range range, stream_handle stream) noexcept;

  std::shared_ptr<uvm_driver> driver_;
  std::unique_ptr<epoch_source> epochs_;
  residency_ledger& ledger_;
  memory_adviser& adviser_;
  prefetch_counts& counts_;
};

}  // namespace rmm_uvm
