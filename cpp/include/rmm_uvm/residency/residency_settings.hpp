// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/residency/budget_sharing.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/neighbor_lender.hpp>
#include <rmm_uvm/residency/neighbor_places.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace rmm_uvm {

/** @brief How a `residency_manager` keeps its budget. */
struct residency_settings {
  std::size_t budget_bytes{0};  ///< managed bytes to keep on the device, > 0
  std::size_t low_bytes{0};     ///< the thread evicts down to this once a request was short of room
  /**
   * Of the device, for others and this budget: it is what others leave of so much, and follows
   * while they take and give back, from `adopt` on. 0: it stays as it is.
   */
  std::size_t followed_bytes{0};
  std::shared_ptr<budget_sharing> sharing{};  ///< where it agrees with others of the device that
                                              ///< follow too; null: with nobody
  static constexpr std::size_t least_budget_bytes{4 * va_block_bytes};  ///< whatever others take

  /**
   * Move past libcuda where the driver can: a prefetch call of libcuda holds a lock that every
   * launch needs. Calls of 2 MiB cost a running kernel 4 %, one of 2 GiB makes each launch wait
   * (measured on an H200).
   */
  bool direct{true};
  std::size_t piece_bytes{0};  ///< one call of an eviction, and of what is fetched ahead; 0: 8 MiB
                               ///< where migrations are direct, 4 MiB else
  std::size_t fetch_bytes{0};  ///< one call for what a program waits for; 0: 32 MiB and 4 MiB
  /**
   * Look-ahead of what is fetched before its use. What comes early drives out what is needed later
   * and would have stayed: a long look-ahead hides more time and may move more bytes.
   */
  std::size_t ahead_bytes{0};
  bool ahead_adapts{false};  ///< begin there, and learn: a piece to half of the budget
  eviction_policy policy{eviction_policy::repeat};
  /**
   * Other devices that live blocks leave to while they have room, before the host: the driver has
   * opened them. `reserve_fraction` of a device's memory stays free. While users have advised about
   * some, all leave to the host. At most `most_neighbors`.
   */
  std::vector<neighbor> neighbors{};
  std::shared_ptr<neighbor_lender> lender{};  ///< says how much of them; null: as much as is free
  bool lends{false};  ///< tell the lender what others may hold of this device: what the budget has
                      ///< left, as on a card of that size
  bool in_place{false};  ///< let kernels use on a neighbour what is streamed through once, as far
                         ///< as that is foreseen; see `cheaper_in_place`
  bool copy_beside{false};  ///< copy what lies on neighbours and is not used to the host, when
                            ///< there is nothing else to do: then it is given back at once
  bool multipath{false};  ///< let some of a burst from the host come over a neighbour's link to it
  link_rates rates{};     ///< to the neighbours, measured; for `in_place` and `multipath`
  static constexpr double reserve_fraction{1.0 / 16};  ///< of a neighbour's memory, left to it
  std::chrono::milliseconds full_period{100};  ///< a neighbour without room is not asked so long
  bool discard_dead{true};  ///< drop dead blocks before live ones are copied; false: copy them too.
                            ///< Without `fetch` nothing is dropped: discarded pages would fault in
                            ///< one by one (measured: 7.8 s for 2 GiB)
  bool rank_dead{false};  ///< dead blocks leave when it is their turn among the live ones, by when
                          ///< their memory is expected to be handed out again; false, and with
                          ///< `fifo`: first
  bool fetch{true};       ///< bring in what is allocated or announced; false: leave it to faults
  bool keep_copies{false};  ///< have the host keep its copy of what comes to be read: it leaves
                            ///< without being copied again
  bool ahead{false};        ///< fetch what is expected next, as far as it is foreseen
  use_tick clock_end{1U << 31U};  ///< where the clock of uses is moved back by half of that; >= 2
  bool background{true};  ///< a thread evicts and fetches ahead; false: only `run_pending` does

  /** @brief Whether dead blocks are dropped. */
  [[nodiscard]] bool drops() const noexcept { return discard_dead && fetch; }

  /** @brief Whether they are dropped in their turn. */
  [[nodiscard]] bool ranks_dead() const noexcept
  {
    return rank_dead && drops() && policy != eviction_policy::fifo;
  }

  /** @brief The usual settings for a budget: the low watermark 1/48 below it. */
  [[nodiscard]] static residency_settings of(std::size_t budget_bytes) noexcept
  {
    residency_settings settings;
    settings.budget_bytes = budget_bytes;
    settings.ahead_bytes  = budget_bytes / 8;
    settings.ahead_adapts = true;
    settings.low_bytes    = budget_bytes - std::min(budget_bytes / 48, std::size_t{384} << 20U);
    return settings;
  }
};

}  // namespace rmm_uvm
