// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/neighbor_busy.hpp>
#include <rmm_uvm/residency/neighbor_places.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rmm_uvm {

/**
 * @brief The memory of other devices that this budget holds: who takes blocks, and how much lies
 * there.
 *
 * It asks the driver and the lender about neighbours, claims memory there before blocks move, and
 * knows what neighbours keep for blocks. It moves nothing itself. Under the ledger's lock; what
 * asks a driver or a lender gives that up.
 */
class neighbor_memory {
 public:
  static constexpr std::chrono::milliseconds loads_period{20};  // as NVML's own figures are
  // Of a link's rate: half of it leaves our copies half of it. A choice, not measured.
  static constexpr busy_thresholds links_busy{0.5, 0.25};

  neighbor_memory(uvm_driver& driver,
                  residency_settings const& settings,
                  budget_ledger& ledger,
                  work_signal& work);

  /** @brief How many neighbours there are. */
  [[nodiscard]] std::size_t size() const noexcept { return neighbors_.size(); }
  /** @brief Where one is. */
  [[nodiscard]] location where(std::size_t number) const noexcept
  {
    return location::device(neighbors_[number].which.device_id);
  }
  /** @brief Whether anything lies on any. */
  [[nodiscard]] bool holds_any() const noexcept { return harvested_bytes_ > 0; }
  /** @brief Whether one holds, or is about to. */
  [[nodiscard]] bool holds(std::size_t number) const noexcept
  {
    return neighbors_[number].held_bytes > 0;
  }

  // Blocks leave for them.
  /**
   * @brief What the key counts of a block that a neighbour has memory for: as much as others'
   * while one takes any.
   * @param[out] taking neighbours that take such blocks, by bits
   */
  [[nodiscard]] std::uint64_t weight_of_kept_now(unsigned& taking) const noexcept;
  /**
   * @brief Where blocks leave to now, and how many of them.
   *
   * The first so many are held there from now on, and on their way: `arrived` ends that.
   * @param[in,out] blocks put in order: those that the neighbour has memory for come first
   */
  [[nodiscard]] refuge refuge_for(ledger_view& view, block_list& blocks);
  /** @brief Blocks that were on their way to a neighbour are there, or did not come. */
  void arrived(std::size_t number, block_list const& blocks, status moved) noexcept;

  // Blocks come back.
  /** @brief Notes what is asked from neighbours: their links carry it for us. */
  void count_traffic(claim_list const& blocks) noexcept;
  /** @brief What was to come from neighbours has come. */
  void left(claim_list const& blocks) noexcept;
  /**
   * @brief What was to come from neighbours may lie there still: they hold it until it comes.
   *
   * Some of it may have come. That is found when it is used next; to give up what a neighbour still
   * has would let others claim the same memory.
   */
  void stayed(claim_list const& blocks) noexcept;
  /** @brief A block of a slab that goes. */
  void forget(block_record const& block) noexcept;

  // Blocks are used there.
  /** @brief Counts a use of a block where it lies: what kernels read comes over its links. */
  void count_in_place(viewed_block const& block) noexcept;

  // Owners need their memory.
  /** @brief How much a neighbour's owner wants back. */
  [[nodiscard]] std::size_t wanted_back(ledger_view& view, std::size_t number);
  /**
   * @brief Blocks went from a neighbour to the host, or were dropped, for its owner.
   * @param at_once without a copy
   */
  void gave_back(std::size_t number, block_list const& blocks, bool at_once) noexcept;
  /** @brief Blocks went to the host for a user's advice. */
  void left_for_advice(std::size_t number, std::size_t blocks) noexcept { left(number, blocks); }
  /** @brief Blocks of a neighbour are on the device, for its owner. */
  void came_home(std::size_t number, block_list const& blocks) noexcept;

  // A burst from the host comes by way of a neighbour, over its own link.
  /**
   * @brief Chooses pieces that do, and claims what the kernel driver keeps there of all that
   * passes.
   *
   * No more pieces go that way than there is room. What memory is kept for already needs none.
   * Takes the lock.
   * @param pieces of the burst, in order
   * @param[out] staged no pieces: none goes that way
   */
  void begin_staging(std::vector<memory_range> const& pieces, staged_pieces& staged) noexcept;
  /** @brief Has a piece go to the neighbour first, if it is one of those. Without the lock. */
  void go_by_the_way(memory_range piece, staged_pieces& staged) noexcept;
  /** @brief What came that way has left the neighbour, and memory is kept there; locks. */
  void end_staging(staged_pieces const& staged) noexcept;

  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;

 private:
  [[nodiscard]] std::optional<device_memory> ask(ledger_view& view, std::size_t number);
  void forget_kept(ledger_view& view, std::size_t number);
  void look_who_is_busy(ledger_view& view) noexcept;
  void takes_nothing(std::size_t number, status why) noexcept;
  void left(std::size_t number, std::size_t blocks) noexcept;
  void owner_has(std::size_t number, block_record& block) noexcept;

  uvm_driver& driver_;
  residency_settings const& settings_;
  budget_ledger& ledger_;
  work_signal& work_;
  std::vector<neighbor_state> neighbors_;
  std::vector<neighbor_watch> watches_;  // of the same neighbours
  std::size_t harvested_bytes_{0};
  std::size_t peak_harvested_bytes_{0};
  std::uint64_t in_place_bytes_{0};
  std::uint64_t staged_bytes_{0};
  std::uint64_t given_back_bytes_{0};
  std::uint64_t given_back_at_once_bytes_{0};
  std::uint64_t held_back_{0};
};

}  // namespace rmm_uvm
