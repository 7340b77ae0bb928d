// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/epoch_source.hpp>
#include <rmm_uvm/residency/ledger.hpp>
#include <rmm_uvm/residency/memory_adviser.hpp>
#include <rmm_uvm/residency/prefetch_policy.hpp>
#include <rmm_uvm/residency/prefetch_statistics.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <span>

namespace rmm_uvm {

/**
 * @brief Makes new slabs and new allocations usable on the device: enacts the prefetch policy.
 *
 * Shared by the managed memory resource, which reports slabs, and by the adaptor, which reports
 * allocations. Never throws: what could not be done is counted, and pages come by fault instead.
 * Thread-safe; the path of an allocation in a time without evictions takes no lock.
 */
class prefetcher {
 public:
  /**
   * @param driver commands and device facts
   * @param epochs tells when residence stops being certain
   */
  prefetcher(std::shared_ptr<uvm_driver> driver, std::unique_ptr<epoch_source> epochs);

  /**
   * @brief Keeps a budget from now on: a `residency_manager` decides what is on the device.
   * @pre called once, and before the first slab
   */
  void keep_budget(residency_settings const& settings);
  /** @brief What keeps the budget; null without one. */
  [[nodiscard]] residency_manager* manager() noexcept { return manager_.get(); }

  /**
   * @brief Takes note of a slab and prefetches as much of it as free device memory holds.
   * @param mode `never` leaves the slab where it is
   */
  void on_slab(memory_range slab, stream_handle stream, prefetch_mode mode) noexcept;

  /** @brief Forgets a slab, before it is given back to the driver. */
  void on_slab_free(std::uintptr_t address) noexcept;

  /**
   * @brief Makes a new allocation usable on the device, in the order of `stream`.
   *
   * Dead contents are discarded before this returns, or not at all: any stream, or the CPU, may
   * write the allocation first.
   * @return false when nothing was issued; with a budget always true, since the manager decides
   */
  bool on_allocate(memory_range allocation, stream_handle stream, prefetch_mode mode) noexcept;

  /** @brief A part of an allocation is handed out anew; see `residency_manager::on_reuse`. */
  void on_reuse(carved_range const& carved, stream_handle stream, bool by_stream) noexcept
  {
    if (manager_ != nullptr) { manager_->on_reuse(carved, stream, by_stream); }
  }
  /** @brief See `residency_manager::on_untold`. */
  void on_untold(memory_range range) noexcept
  {
    if (manager_ != nullptr) { manager_->on_untold(range); }
  }

  /**
   * @brief Takes note of a free, before the memory can be handed out again.
   * @param by_stream see `residency_manager::on_free`
   */
  void on_free(memory_range allocation, stream_handle stream, bool by_stream = true) noexcept
  {
    // Advice is about addresses, and these may be handed out again.
    if (auto const taken = adviser_.take_back(allocation); !taken.ok()) {
      counts_.add_failure(taken);
    }
    if (manager_ != nullptr) { manager_->on_free(allocation, stream, by_stream); }
  }

  /** @brief Uses of live memory are about to be issued to `stream`: brings in what may be away. */
  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept;
  /** @brief True while nothing can be away; takes no lock. */
  [[nodiscard]] bool all_present() noexcept
  {
    return manager_ != nullptr ? manager_->all_present()
                               : ledger_.all_on_device(epochs_->current());
  }
  /** @brief See `residency_manager::confirm_present`; false without a budget. */
  bool confirm_present(stream_handle stream) noexcept
  {
    return manager_ != nullptr && manager_->confirm_present(stream);
  }
  /** @brief See `residency_manager::confirmed_present`; false without a budget. */
  [[nodiscard]] bool confirmed_present() const noexcept
  {
    return manager_ != nullptr && manager_->confirmed_present();
  }
  /** @brief Brings live memory to the device in the order of `stream`. */
  void bring(memory_range range, stream_handle stream) noexcept;
  /**
   * @brief Moves the blocks that lie wholly in `range` to the host.
   * @return bytes that were sent
   */
  std::size_t evict(memory_range range, stream_handle stream) noexcept;

  /**
   * @brief Advises the driver about the blocks that lie wholly in `range`, until any is freed.
   * @param range live memory of one user
   */
  advice_outcome advise(memory_range range, advice_change change) noexcept;
  /** @brief Bytes of the blocks that something is advised about. */
  [[nodiscard]] std::size_t advised_bytes() const noexcept { return adviser_.advised_bytes(); }

  /**
   * @brief Drops the contents of blocks that hold no live byte, so that evicting them copies
   * nothing.
   *
   * The blocks are in doubt from then on: the next allocation there makes them usable again, unless
   * its mode is `never`.
   * @param blocks whole blocks, each run of them in one slab
   * @return true when they were discarded
   * @pre no work in flight reads or writes the blocks
   */
  bool on_dead(std::span<memory_range const> blocks) noexcept;

  /** @brief Everything counted so far. */
  [[nodiscard]] prefetch_statistics statistics() const noexcept { return counts_.snapshot(); }

  /** @brief Bytes prefetched so far, of slabs and for allocations; takes no lock. */
  [[nodiscard]] std::uint64_t prefetched_bytes() const noexcept
  {
    return counts_.prefetched_bytes();
  }
  /** @brief Bytes discarded so far; takes no lock. */
  [[nodiscard]] std::uint64_t discarded_bytes() const noexcept { return counts_.discarded_bytes(); }

  /** @brief The blocks and what is known about them. */
  [[nodiscard]] residency_ledger const& ledger() const noexcept { return ledger_; }

  /** @brief The epoch now; see `epoch_source`. */
  [[nodiscard]] epoch_number current_epoch() noexcept { return epochs_->current(); }

  /** @brief The driver that is commanded. */
  [[nodiscard]] uvm_driver& driver() noexcept { return *driver_; }

 private:
  /**
   * @brief Ends a manager, but in a forked child: its threads are not there to be waited for, and
   * what they wait on may be destroyed only once they have ended.
   */
  struct not_in_a_fork {
    pid_t process;

    not_in_a_fork() noexcept : process{::getpid()} {}
    void operator()(residency_manager* manager) const noexcept
    {
      if (process == ::getpid()) { delete manager; }
    }
  };

  bool settle_doubt(memory_range allocation, stream_handle stream, epoch_number epoch);
  bool can_issue(std::size_t bytes) noexcept;
  bool may_issue(memory_range range, stream_handle stream) noexcept;
  void renew(std::span<memory_range const> ranges, stream_handle stream, epoch_number epoch);
  bool issue_prefetch(memory_range range, stream_handle stream) noexcept;

  std::shared_ptr<uvm_driver> driver_;
  std::unique_ptr<epoch_source> epochs_;
  residency_ledger ledger_;
  memory_adviser adviser_;
  prefetch_counts counts_;
  std::unique_ptr<residency_manager, not_in_a_fork> manager_;  // last: its thread uses the rest
};

}  // namespace rmm_uvm
