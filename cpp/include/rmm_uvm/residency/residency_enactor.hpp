// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/live_blocks.hpp>
#include <rmm_uvm/residency/prefetch_policy.hpp>
#include <rmm_uvm/residency/residency_statistics.hpp>
#include <rmm_uvm/residency/segment_map.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace rmm_uvm {

/**
 * @brief What is done about the residency of one resource's managed memory; calls the driver.
 *
 * There is one for memory without a budget and one that keeps a budget: see `managed_residency`,
 * which says when which is asked. Thread-safe. Never throws: what could not be done is counted, and
 * pages come by fault instead.
 */
class residency_enactor {
 public:
  residency_enactor()                                    = default;
  residency_enactor(residency_enactor const&)            = delete;
  residency_enactor& operator=(residency_enactor const&) = delete;
  residency_enactor(residency_enactor&&)                 = delete;
  residency_enactor& operator=(residency_enactor&&)      = delete;
  virtual ~residency_enactor()                           = default;

  /** @brief A slab was entered in the ledger. */
  virtual void on_slab(memory_range slab, stream_handle stream, prefetch_mode mode) noexcept = 0;
  /**
   * @brief Has the ledger forget a slab that is to be given back to the driver.
   * @return for `on_slab_freed`
   */
  virtual std::size_t on_slab_free(memory_range slab) noexcept = 0;
  /** @brief The slab was given back. */
  virtual void on_slab_freed(std::size_t kept_bytes) noexcept = 0;

  /**
   * @brief Makes a new allocation usable on the device, in the order of `stream`.
   * @return false when nothing was issued, as far as that is known at once
   */
  virtual bool on_allocate(memory_range allocation,
                           stream_handle stream,
                           prefetch_mode mode) noexcept = 0;
  /** @brief See `residency_manager::on_reuse`. */
  virtual void on_reuse(carved_range const& carved,
                        stream_handle stream,
                        bool by_stream) noexcept = 0;
  /** @brief See `residency_manager::on_untold`. */
  virtual void on_untold(memory_range range) noexcept = 0;
  /** @brief See `residency_manager::on_free`. */
  virtual void on_free(memory_range allocation, stream_handle stream, bool by_stream) noexcept = 0;
  /** @brief Drops the contents of whole blocks, if it is not its own to decide. @return whether */
  virtual bool on_dead(std::span<memory_range const> blocks) noexcept = 0;
  /** @brief See `managed_residency::drop_dead`. */
  virtual bool drop_dead(std::span<memory_range const> blocks) noexcept = 0;

  /** @brief Uses of live memory are about to be issued to `stream`. */
  virtual void on_touch(std::span<use_event const> uses, stream_handle stream) noexcept = 0;
  /** @brief Work that writes all of these ranges was issued: from then on they are only read. */
  virtual void on_made(std::span<memory_range const> /*ranges*/) noexcept {}
  /** @brief Brings live memory to the device in the order of `stream`. */
  virtual void bring(memory_range range, stream_handle stream) noexcept = 0;
  /** @brief Moves the blocks that lie wholly in `range` to the host. @return bytes */
  virtual std::size_t evict(memory_range range, stream_handle stream) noexcept = 0;
  /** @brief See `residency_manager::sleep`; nothing where nobody decides what leaves. */
  virtual std::size_t sleep() noexcept { return 0; }
  /** @brief See `residency_manager::wake`. */
  virtual std::size_t wake(stream_handle /*stream*/) noexcept { return 0; }
  /** @brief A user advised about a range. */
  virtual void on_advised(memory_range range) noexcept = 0;
  /** @brief Keeps blocks where they are, while somebody decides what leaves. */
  virtual void pin(memory_range range) noexcept = 0;
  /** @brief Takes one `pin` of the same range back. */
  virtual void unpin(memory_range range) noexcept = 0;

  /** @brief True while nothing can be away; takes no lock. */
  [[nodiscard]] virtual bool all_present() noexcept = 0;
  /** @brief Looks whether all that lives is on the device, and remembers it until some leaves. */
  virtual bool confirm_present(stream_handle stream) noexcept = 0;
  /** @brief Whether `confirm_present` found that, and nothing left since; takes no lock. */
  [[nodiscard]] virtual bool confirmed_present() const noexcept = 0;

  /** @brief Whether slabs are larger than the budget; takes no lock. */
  [[nodiscard]] virtual bool under_pressure() const noexcept = 0;
  /** @brief The budget now; 0 without one. Takes no lock. */
  [[nodiscard]] virtual std::size_t budget_bytes() const noexcept = 0;
  /** @brief In which requests waited so far; 0 without a budget. Takes no lock. */
  [[nodiscard]] virtual std::uint64_t waited_ns() const noexcept { return 0; }
  /** @brief Counts and levels of the budget; none without one. */
  [[nodiscard]] virtual std::optional<residency_statistics> statistics() const noexcept = 0;
  /** @brief See `residency_manager::take_live_blocks`; nothing lives where nobody counts. */
  [[nodiscard]] virtual live_blocks take_live_blocks(bool begins) noexcept = 0;

  /** @brief Waits until its thread has nothing to do. */
  virtual void flush() noexcept = 0;
  /** @brief Does in the caller's thread what its own would do. */
  virtual void run_pending() noexcept = 0;
  /** @brief The next piece of that only. @return whether there may be another one */
  virtual bool run_pending_piece() noexcept = 0;
};

}  // namespace rmm_uvm
