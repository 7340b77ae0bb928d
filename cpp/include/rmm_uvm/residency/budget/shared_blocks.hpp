// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/residency/block_record.hpp>
#include <rmm_uvm/residency/budget/use_clock.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

namespace rmm_uvm {

/**
 * @brief When each allocation is needed next, of blocks that several live in.
 *
 * Such a block is needed as soon as one of them is, and a use of one says nothing about the others.
 * A record of a block has room for one moment: the rest is here, for as long as anything lives in
 * the block. It touches no record. A step costs the logarithm of how many share the block. Under
 * the ledger's lock.
 */
class shared_blocks {
 public:
  /** @brief What is expected of one allocation in a block. */
  struct expectation {
    use_tick next{unknown_use};  ///< when it is used next, or freed
    bool no_more{false};         ///< then it is freed, with no use announced before
  };

  /** @brief What it is asked at. */
  struct moment_at {
    use_tick now{never_used};
    bool room{false};  ///< a part of the block is free
  };

  /**
   * @brief Begins to keep a block, of whose allocations none is known by name yet.
   * @param block its first byte
   * @param next, last when any of them is expected to be used next, and was used last
   */
  void begin(std::uintptr_t block, use_tick next, use_tick last);
  /**
   * @brief An allocation in a block that is kept is used, or made.
   * @param owner its first byte
   * @return when the block is needed next; `unknown_use` where no use of it is foreseen
   */
  use_tick use(std::uintptr_t block, std::uintptr_t owner, expectation next, moment_at at);
  /** @brief An allocation is gone. @return as `use` */
  use_tick forget(std::uintptr_t block, std::uintptr_t owner, moment_at at) noexcept;
  /** @brief A use that was expected did not come. @return as `use` */
  use_tick look_again(std::uintptr_t block, moment_at at) noexcept;
  /** @brief Ends to keep a block, if it is kept. */
  void end(std::uintptr_t block) noexcept { blocks_.erase(block); }
  /** @brief Moves what it remembers back with the clock. */
  void turn_back(tick_shift const& shift) noexcept;

  /** @brief How many blocks are kept. */
  [[nodiscard]] std::size_t size() const noexcept { return blocks_.size(); }

 private:
  using moment  = std::pair<use_tick, std::uintptr_t>;  // of an owner
  using moments = std::set<moment>;
  struct owner_use {
    expectation next;
    use_tick last{never_used};
  };
  struct shared_block {
    // An owner is in one of the lists; in none where it is foreseen that it is not used again.
    std::unordered_map<std::uintptr_t, owner_use> owners;
    moments used;                 // by next use
    moments freed;                // by when
    moments unforeseen;           // by last use
    use_tick handed{never_used};  // when a part was handed out, or given back, last
  };

  [[nodiscard]] static moments* list_of(shared_block& block, expectation next) noexcept;
  [[nodiscard]] static moment moment_of(std::uintptr_t owner, owner_use const& of) noexcept;
  static void pass(shared_block& block, moments& overdue, use_tick now) noexcept;
  [[nodiscard]] static use_tick foreseen(shared_block& block, use_tick now) noexcept;
  [[nodiscard]] static use_tick soonest(shared_block& block, moment_at at) noexcept;

  std::unordered_map<std::uintptr_t, shared_block> blocks_;  // by first byte
};

}  // namespace rmm_uvm
