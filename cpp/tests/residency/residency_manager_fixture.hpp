// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"
#include "../support/recording_driver.hpp"
#include "../support/touching.hpp"

#include <rmm_uvm/residency/residency_manager.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace rmm_uvm::tests {

/** @brief A manager that works in the caller's thread, over a driver that records every call. */
class ResidencyManager : public testing::Test {
 protected:
  using calls = std::vector<driver_call>;

  static constexpr std::size_t budget_blocks = 8;

  void make(eviction_policy policy = eviction_policy::lru)
  {
    auto settings           = residency_settings::of(budget);
    settings.policy         = policy;
    settings.ahead          = fetches_ahead;
    settings.ahead_adapts   = ahead_adapts;
    settings.background     = false;
    settings.fetch_bytes    = fetch_bytes;
    settings.fetch          = fetch;
    settings.discard_dead   = discard_dead;
    settings.rank_dead      = rank_dead;
    settings.neighbors      = neighbors;
    settings.lender         = lender;
    settings.lends          = offers_memory;
    settings.in_place       = in_place;
    settings.copy_beside    = copy_beside;
    settings.keep_copies    = keep_copies;
    settings.rates          = rates;
    settings.multipath      = multipath;
    settings.clock_end      = clock_end;
    settings.full_period    = full_period;
    settings.followed_bytes = followed_bytes;
    ledger.add_slab(slab);
    manager = std::make_unique<residency_manager>(driver, ledger, settings, &adviser);
  }
  [[nodiscard]] static memory_range at(std::size_t first, std::size_t count = 1)
  {
    return block_range(slab_address, first, count);
  }
  void allocate(std::size_t first, std::size_t count)
  {
    manager->on_allocate(at(first, count), stream);
  }
  /** @brief A part is handed out anew, all of it free before. */
  void reuse(memory_range extent, std::size_t likely_bytes = 0)
  {
    manager->on_reuse({extent, extent, likely_bytes}, stream);
  }
  void free(std::size_t first, std::size_t count) { manager->on_free(at(first, count), stream); }
  void touch(std::size_t first, std::size_t count)
  {
    tests::touch(*manager, at(first, count), stream);
  }
  [[nodiscard]] driver_call to_host(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, evictions, location::host_id};
  }
  [[nodiscard]] driver_call dropped(std::size_t first, std::size_t count) const
  {
    return {"discard", {at(first, count)}, discards};
  }
  /** @brief Nothing is in the blocks any more, or nothing ever was: they come without a copy. */
  [[nodiscard]] driver_call renewed(std::size_t first, std::size_t count) const
  {
    return {"discard_and_prefetch", {at(first, count)}, discards, 0};
  }
  [[nodiscard]] driver_call fetched(std::size_t first, std::size_t count) const
  {
    return {"prefetch", {at(first, count)}, stream, 0};
  }
  [[nodiscard]] driver_call migrated_to_host(std::size_t first, std::size_t count) const
  {
    return {"migrate", {at(first, count)}, nullptr, location::host_id};
  }
  /** @brief How often a stream was waited for, of all calls since the last time. */
  [[nodiscard]] std::ptrdiff_t waits_for(stream_handle one)
  {
    auto const waits = driver->take_calls("synchronize");
    return std::count_if(
      waits.begin(), waits.end(), [one](driver_call const& call) { return call.stream == one; });
  }
  [[nodiscard]] calls moves()
  {
    calls found;
    for (auto& each : driver->take_calls()) {
      if (each.name == "prefetch" || each.name == "discard" ||
          each.name == "discard_and_prefetch" || each.name == "migrate") {
        found.push_back(each);
      }
    }
    return found;
  }

  bool fetch{true};
  std::size_t fetch_bytes{blocks(32)};
  bool discard_dead{true};
  bool rank_dead{false};
  bool ahead_adapts{true};
  std::vector<neighbor> neighbors;
  std::shared_ptr<neighbor_lender> lender;
  bool offers_memory{false};
  bool in_place{false};
  bool copy_beside{false};
  bool keep_copies{false};
  bool multipath{false};
  use_tick clock_end{residency_settings{}.clock_end};
  std::chrono::milliseconds full_period{residency_settings{}.full_period};
  std::size_t budget{blocks(budget_blocks)};
  link_rates rates{};
  bool fetches_ahead{true};
  std::size_t followed_bytes{0};
  memory_range slab{slab_address, blocks(32)};
  stream_handle const stream{reinterpret_cast<stream_handle>(std::uintptr_t{0x1234})};
  stream_handle const evictions{recording_driver::own(own_stream_use::evictions)};
  stream_handle const discards{recording_driver::own(own_stream_use::discards)};
  stream_handle const frees{recording_driver::own(own_stream_use::frees)};
  std::shared_ptr<recording_driver> driver{std::make_shared<recording_driver>()};
  residency_ledger ledger;
  memory_adviser adviser{driver, ledger};
  std::unique_ptr<residency_manager> manager;
};

}  // namespace rmm_uvm::tests
