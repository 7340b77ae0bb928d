// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/uvm_driver.hpp>
#include <rmm_uvm/process/locks.hpp>
#include <rmm_uvm/residency/budget/beside_advice.hpp>
#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/budget/budget_ledger.hpp>
#include <rmm_uvm/residency/budget/device_offer.hpp>
#include <rmm_uvm/residency/budget/kept_copies.hpp>
#include <rmm_uvm/residency/budget/moved_account.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>
#include <rmm_uvm/residency/budget/presence.hpp>
#include <rmm_uvm/residency/budget/room_maker.hpp>
#include <rmm_uvm/residency/budget/stream_marks.hpp>
#include <rmm_uvm/residency/budget/waited_time.hpp>
#include <rmm_uvm/residency/budget/waiting_memory.hpp>
#include <rmm_uvm/residency/budget/work_signal.hpp>
#include <rmm_uvm/residency/residency_settings.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace rmm_uvm {

/** @brief Why blocks come. */
enum class arrival_reason : std::uint8_t { allocation, use, asked, ahead, doubt, away };

/** @brief Ranges that somebody wants on the device. */
struct arrival_request {
  range_list wanted;
  memory_range allocation{};  ///< all of it is newly handed out: its contents are nobody's
  stream_handle stream{nullptr};
  arrival_reason why{arrival_reason::asked};
};

/**
 * @brief Has blocks come: what is missing of a request is claimed, given room, and asked to the
 * device.
 *
 * One request at a time makes room. It takes the ledger's lock itself, and gives it up while calls
 * are under way, with the blocks marked busy.
 */
class arrivals {
 public:
  /** @brief What it works with; all of it outlives this object. */
  struct parts {
    uvm_driver& driver;
    residency_settings const& settings;
    budget_ledger& ledger;
    use_clock const& clock;
    moved_account& moved;
    presence& present;
    stream_marks& marks;
    block_mover& mover;
    device_offer& offer;
    neighbor_memory& neighbors;
    beside_advice& advice;
    kept_copies& copies;
    room_maker& room;
    waiting_memory& waiting;
    work_signal const& work;
  };
  explicit arrivals(parts const& all) noexcept : with_{all} {}
  arrivals(arrivals const&)            = delete;
  arrivals& operator=(arrivals const&) = delete;
  arrivals(arrivals&&)                 = delete;
  arrivals& operator=(arrivals&&)      = delete;
  virtual ~arrivals()                  = default;

  /** @brief Brings what is missing of a request, in the order of its stream. */
  void bring(arrival_request const& request);
  /** @brief What was discarded of a range is its user's from now on, and comes by page faults. */
  void leave_discarded(memory_range range) noexcept;
  /**
   * @brief Nothing is brought: not all that lives is there for certain any more.
   *
   * What nothing is in counts as there: the first writes make its pages there, and move no bytes.
   */
  void leave_to_faults(memory_range range) noexcept;
  /** @brief See `residency_manager::confirm_present`. */
  virtual bool confirm_present(stream_handle stream);
  /** @brief Fills in what is counted here. */
  void tell(residency_statistics& told) const noexcept;
  /** @brief In which requests waited so far. Takes no lock. */
  [[nodiscard]] std::uint64_t waited_ns() const noexcept { return waited_.ns(); }

 protected:
  /** @brief Bytes that have to be on the device at once for a request, of which some are missing.
   */
  [[nodiscard]] virtual std::size_t needed_bytes(ledger_view& view,
                                                 range_list wanted,
                                                 std::size_t missing_bytes) const;
  /** @brief Brings a request for which there is no room yet; nobody else makes room meanwhile. */
  virtual void bring_without_room(ledger_view& view, arrival_request const& request);
  /** @brief The blocks that are missing; waits for those that calls are under way about. */
  [[nodiscard]] claim_list claim(ledger_view& view, arrival_request const& request);
  /** @brief Counts what is missing as present, and has others leave for it; holds the request. */
  memory_range admit(ledger_view& view, claim_list const& missing, arrival_request const& request);
  /** @brief Blocks that were missing have come, or may not all have; they are busy no more. */
  void settle(claim_list const& missing, bool came) noexcept;

  // NOLINTNEXTLINE(*-non-private-member-variables-in-classes): what a kind of arrivals works with
  parts with_;

 private:
  using places = std::vector<std::vector<memory_range>>;

  void bring_in_parts(arrival_request const& request, std::size_t budget_bytes);
  [[nodiscard]] block_list count_as_there(ledger_view& view, memory_range range);
  void note_none_kept(claim_list const& blocks) noexcept;
  void begin_on_host(memory_range range);
  void bring_claimed(ledger_view& view, claim_list& missing, arrival_request const& request);
  void choose_renewed(claim_list& blocks, stream_handle stream) noexcept;
  [[nodiscard]] std::size_t place_of(claimed_block const& block) const noexcept;
  bool issue(claim_list const& blocks,
             arrival_request const& request,
             memory_range left_out) noexcept;
  status fetch_all(places const& from,
                   stream_handle stream,
                   std::atomic<std::size_t>& moved_bytes) noexcept;

  ranked_mutex<lock_rank::room> room_;  // one at a time makes room; taken before the ledger's lock
  std::uint64_t fetched_bytes_{0};
  std::uint64_t fetched_ahead_bytes_{0};
  std::uint64_t renewed_bytes_{0};
  std::uint64_t undiscarded_bytes_{0};
  std::uint64_t undiscarded_copied_bytes_{0};
  std::uint64_t from_neighbor_bytes_{0};
  std::uint64_t too_large_{0};
  std::size_t too_large_bytes_{0};
  waited_time waited_;
};

}  // namespace rmm_uvm
