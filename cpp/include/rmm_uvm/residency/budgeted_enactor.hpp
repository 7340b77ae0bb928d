// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/residency_enactor.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <memory>

namespace rmm_uvm {

/** @brief Memory under a budget: a `residency_manager` decides what is on the device. */
class budgeted_enactor final : public residency_enactor {
 public:
  /** @param driver, ledger, settings, adviser see `residency_manager` */
  budgeted_enactor(std::shared_ptr<uvm_driver> driver,
                   residency_ledger& ledger,
                   residency_settings const& settings,
                   memory_adviser& adviser);

  /** @brief See `residency_manager::adopt`. */
  void adopt(std::function<void()> const& publish) noexcept { manager_->adopt(publish); }
  /** @brief See `residency_manager::change_budget`. */
  void change_budget(std::size_t budget_bytes, std::size_t low_bytes) noexcept
  {
    manager_->change_budget(budget_bytes, low_bytes);
  }
  /** @brief See `residency_manager::retire`. */
  void retire(std::function<void()> const& publish) noexcept { manager_->retire(publish); }

  /** @brief Blocks come as allocations need them. */
  void on_slab(memory_range, stream_handle, prefetch_mode) noexcept override {}
  std::size_t on_slab_free(memory_range slab) noexcept override
  {
    return manager_->on_slab_free(slab);
  }
  void on_slab_freed(std::size_t kept_bytes) noexcept override
  {
    manager_->on_slab_freed(kept_bytes);
  }
  /** @return true: the manager decides what is issued */
  bool on_allocate(memory_range allocation,
                   stream_handle stream,
                   prefetch_mode mode) noexcept override
  {
    if (allocation.bytes == 0) { return false; }
    if (mode == prefetch_mode::always) { manager_->renew_arrival(allocation, stream); }
    at_work().on_allocate(allocation, stream);
    return true;
  }
  void on_reuse(carved_range const& carved, stream_handle stream, bool by_stream) noexcept override
  {
    at_work().on_reuse(carved, stream, by_stream);
  }
  void on_untold(memory_range range) noexcept override { manager_->on_untold(range); }
  void on_free(memory_range allocation, stream_handle stream, bool by_stream) noexcept override
  {
    at_work().on_free(allocation, stream, by_stream);
  }
  /** @return false: the manager drops what is dead when it needs the room */
  bool on_dead(std::span<memory_range const>) noexcept override { return false; }
  bool drop_dead(std::span<memory_range const> blocks) noexcept override
  {
    return manager_->drop_dead(blocks);
  }

  void on_made(std::span<memory_range const> ranges) noexcept override
  {
    at_work().on_made(ranges);
  }
  void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept override
  {
    at_work().on_touch(uses, stream);
  }
  void bring(memory_range range, stream_handle stream) noexcept override
  {
    at_work().prefetch(range, stream);
  }
  std::size_t evict(memory_range range, stream_handle) noexcept override
  {
    return manager_->evict(range);
  }
  std::size_t sleep() noexcept override { return manager_->sleep(); }
  std::size_t wake(stream_handle stream) noexcept override { return at_work().wake(stream); }
  void on_advised(memory_range range) noexcept override { manager_->on_advised(range); }
  void pin(memory_range range) noexcept override { manager_->pin(range); }
  void unpin(memory_range range) noexcept override { manager_->unpin(range); }

  [[nodiscard]] bool all_present() noexcept override { return at_work().all_present(); }
  bool confirm_present(stream_handle stream) noexcept override
  {
    return at_work().confirm_present(stream);
  }
  [[nodiscard]] bool confirmed_present() const noexcept override
  {
    return at_work().confirmed_present();
  }
  [[nodiscard]] bool under_pressure() const noexcept override { return manager_->under_pressure(); }
  [[nodiscard]] std::size_t budget_bytes() const noexcept override
  {
    return manager_->budget_bytes();
  }
  [[nodiscard]] std::uint64_t waited_ns() const noexcept override { return manager_->waited_ns(); }
  [[nodiscard]] std::optional<residency_statistics> statistics() const noexcept override
  {
    return manager_->statistics();
  }
  [[nodiscard]] live_blocks take_live_blocks(bool begins) noexcept override
  {
    return manager_->take_live_blocks(begins);
  }
  void flush() noexcept override { manager_->flush(); }
  void run_pending() noexcept override { manager_->run_pending(); }
  bool run_pending_piece() noexcept override { return manager_->run_pending_piece(); }

 private:
  /** @brief The manager, for a program that does something. */
  [[nodiscard]] residency_manager& at_work() const noexcept
  {
    manager_->note_use();
    return *manager_;
  }
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

  std::unique_ptr<residency_manager, not_in_a_fork> manager_;
};

}  // namespace rmm_uvm
