// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/residency/eviction_policy.hpp>
#include <rmm_uvm/residency/use_predictor.hpp>

#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/** @brief What a `residency_manager` did since it was made, and where things stand; a copy. */
struct residency_statistics {
  eviction_policy policy{eviction_policy::repeat};
  std::size_t budget_bytes{0};          ///< managed bytes to keep on the device
  std::uint64_t budget_changes{0};      ///< times that it followed what others hold
  std::size_t unmanaged_bytes{0};       ///< of all processes, as told when it followed last
  bool unmanaged_told{true};            ///< false: all that others hold is in the next one
  std::size_t hidden_bytes{0};          ///< what others hold beside that, as far as it shows
  std::size_t sharers{0};               ///< other budgets that it shares the device with
  std::size_t resident_bytes{0};        ///< on the device, as far as the ledger knows
  std::size_t peak_resident_bytes{0};   ///< the most of it
  std::size_t pinned_bytes{0};          ///< of blocks that stay where they are
  std::size_t overshoot_bytes{0};       ///< faulted in beside the budget: there now, estimated
  std::size_t peak_overshoot_bytes{0};  ///< the most of it that was seen
  std::uint64_t faulted_bytes{0};       ///< that kernels faulted in: at least
  std::uint64_t found_bytes{0};         ///< of those, found: they count under the budget since
  std::uint64_t looks{0};               ///< times that was looked for
  std::uint64_t evicted_bytes{0};   ///< moved to the host or beside: live, or not known to be dead
  std::uint64_t uncopied_bytes{0};  ///< of `evicted_bytes`, of which the host had kept a copy
  std::size_t kept_copy_bytes{0};   ///< on the device now, of which the host keeps a copy
  std::uint64_t copied_early_bytes{0};  ///< copied to the host before they had to leave
  std::uint64_t dropped_bytes{0};       ///< dead, discarded in place of being copied
  std::uint64_t fetched_bytes{0};  ///< brought in for a use that waits; not what was there already
  std::uint64_t renewed_bytes{0};  ///< made usable for a new allocation without a copy
  std::uint64_t undiscarded_bytes{0};  ///< dead, but handed out while work before their free was
                                       ///< under way: they came with their contents
  std::uint64_t undiscarded_copied_bytes{0};  ///< of these, not on the device: they were copied
  std::uint64_t fetched_ahead_bytes{0};       ///< brought in before the use
  std::uint64_t ahead_used_bytes{0};          ///< of these, used before they left again
  std::size_t ahead_bytes{0};                 ///< how far ahead it is fetched now
  std::uint64_t wanted_bytes{0};              ///< of blocks that a use was announced of
  std::uint64_t present_bytes{0};             ///< of these, on the device already
  std::uint64_t neighbor_bytes{0};            ///< of `evicted_bytes`, to another device
  std::size_t harvested_bytes{0};        ///< lie on other devices now, as far as the ledger knows
  std::size_t peak_harvested_bytes{0};   ///< the most of it
  std::uint64_t from_neighbor_bytes{0};  ///< fetched from other devices
  std::uint64_t in_place_bytes{0};       ///< of announced uses, on other devices, through mappings
  std::uint64_t copied_beside_bytes{0};  ///< of what lies there, copied to the host beforehand
  std::uint64_t staged_bytes{0};         ///< fetched from the host by way of another device
  std::uint64_t given_back_bytes{0};     ///< left another device since its owner needs its memory
  std::uint64_t given_back_at_once_bytes{0};  ///< of those, without a copy
  std::uint64_t held_back{0};  ///< times that blocks left to the host: all neighbours were busy
  std::uint64_t reclaims{0};   ///< times that others held what was needed here
  std::uint64_t reclaim_wait_ns{0};  ///< until they had left it, or the kernel driver took it
  std::uint64_t eviction_calls{0};   ///< prefetches to the host, or to another device
  std::uint64_t waits{0};            ///< uses that waited for a call about the same block
  std::uint64_t over_budget{0};      ///< times that no block could leave: all were pinned or wanted
  std::uint64_t too_large{0};        ///< requests larger than the budget
  std::size_t too_large_bytes{0};    ///< the largest of those, in whole blocks
  std::uint64_t waited_ns{0};        ///< in which a request, or several, waited for what they use
  std::uint64_t waited_for_room_ns{0};  ///< of that, until others had left
  std::uint64_t host_read_bytes{0};     ///< of those, read on the host through mappings
  std::uint64_t unfenced_frees{0};      ///< frees without a fence; their blocks are never dropped
  std::uint64_t failed_calls{0};        ///< driver calls that failed; nothing was lost
  status last_failure;                  ///< the latest of those
  prediction_score prediction;          ///< how good the predictor was lately
  bool foresees{false};                 ///< whether it is believed now
  std::uint64_t switched_off{0};        ///< how often it stopped being believed
};

}  // namespace rmm_uvm
