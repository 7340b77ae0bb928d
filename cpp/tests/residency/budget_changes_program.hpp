// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/touching.hpp"
#include "random_allocations.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>

namespace rmm_uvm::tests {

/** @brief What a wrong manager would know of blocks that it takes over. */
enum class wrong_knowledge : std::uint8_t {
  none,
  all_is_dead,  ///< nothing lives in a block until it is told
  all_is_told,  ///< what was told last is all that lives in a block
};

/** @brief A slab of 24 blocks with real bytes behind it, whose budget comes and goes. */
class changing_budget {
 public:
  static constexpr std::size_t slab_blocks = 24;

  /** @param capacity blocks of the device: for the whole slab, or less */
  explicit changing_budget(eviction_policy policy,
                           bool background      = false,
                           std::size_t capacity = 2 * slab_blocks,
                           wrong_knowledge what = wrong_knowledge::none)
    : device{std::make_shared<sim::simulated_device>(configuration(capacity))},
      residency{device, make_epoch_source(*device)},
      policy_{policy},
      background_{background},
      wrong_{what}
  {
    static_cast<void>(device->allocate_managed(slab.bytes, slab.address));
    residency.on_slab(slab, nullptr, prefetch_mode::automatic);
    pool = std::make_unique<first_fit>(slab);
  }

  void start(std::size_t budget_blocks)
  {
    auto settings        = residency_settings::of(blocks(budget_blocks));
    settings.policy      = policy_;
    settings.ahead       = true;
    settings.background  = background_;
    settings.keep_copies = budget_blocks % 2 == 0;
    settings.rank_dead   = budget_blocks % 4 < 2;
    if (budget_blocks % 3 == 0) { settings.followed_bytes = settings.budget_bytes; }
    residency.start_budget(settings);
    if (wrong_ == wrong_knowledge::all_is_dead) { claim_to_know(slab, 0); }
  }
  void change(std::size_t budget_blocks)
  {
    static_cast<void>(residency.change_budget(blocks(budget_blocks), blocks(budget_blocks - 1)));
  }
  /** @brief Others, whom budgets may follow, hold so much of the device from now on. */
  void others_hold(std::size_t count)
  {
    auto& program = device->program();
    if (others_ != 0) { static_cast<void>(program.free_device(others_)); }
    others_ = 0;
    if (count > 0) { static_cast<void>(program.allocate_device(blocks(count), others_)); }
  }
  /** @brief Starts, changes or ends a budget of 4 to 19 blocks, or has others take or give. */
  void change_at_random(std::mt19937_64& random)
  {
    auto const budget_blocks = 4 + random() % 16;
    switch (random() % 4) {
      case 0: start(budget_blocks); break;
      case 1: change(budget_blocks); break;
      case 2: others_hold(budget_blocks % 4); break;
      default: residency.end_budget();
    }
  }
  void handed_out(memory_range range)
  {
    if (wrong_ == wrong_knowledge::all_is_told) { claim_to_know(range, range.bytes); }
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab{0, blocks(slab_blocks) - 4096};  // the last block is cut off
  managed_residency residency;
  std::unique_ptr<first_fit> pool;

 private:
  [[nodiscard]] static sim::simulated_device_config configuration(std::size_t capacity)
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(capacity);
    config.backing        = true;
    return config;
  }
  /** @brief Says that of untold blocks only so much lives, and that no work uses them. */
  void claim_to_know(memory_range range, std::size_t live_bytes)
  {
    ledger_view view{const_cast<residency_ledger&>(residency.ledger())};
    view.each(range, [&](block_record& block, memory_range whole) {
      if (!block.untold) { return; }
      block.untold = block.unfenced = false;
      block.live_bytes =
        static_cast<std::uint32_t>(live_bytes == 0 ? 0 : bytes_in_common(range, whole));
    });
  }

  eviction_policy policy_;
  bool background_;
  wrong_knowledge wrong_;
  std::uintptr_t others_{0};  // memory that others hold; 0: none
};

/** @brief One thread of a program that allocates, uses, frees and hints at random, and checks. */
class budget_changes_program final : public random_allocations {
 public:
  budget_changes_program(changing_budget& memory, std::uint64_t seed)
    : random_allocations{seed, 12}, memory_{memory}
  {
  }

 private:
  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes) override
  {
    auto const address = memory_.pool->take(bytes);
    if (!address) { return address; }
    memory_.residency.on_allocate({*address, bytes}, nullptr, prefetch_mode::automatic);
    memory_.handed_out({*address, bytes});
    static_cast<void>(memory_.device->program().touch({*address, bytes}, true));
    return address;
  }
  void give(memory_range range) override
  {
    memory_.residency.on_free(range, nullptr);
    memory_.pool->give(range.address, range.bytes);
  }
  [[nodiscard]] bool use(memory_range range, std::uint64_t choice) override
  {
    auto& residency = memory_.residency;
    switch (choice) {
      case 7: static_cast<void>(residency.evict(range, nullptr)); return false;
      case 8: residency.bring(range, nullptr); return false;
      case 9:
        residency.pin(range);
        static_cast<void>(residency.evict(range, nullptr));
        residency.unpin(range);
        return false;
      case 10: {
        use_event const read{use_kind::touch, range, range.address, 0, true};
        residency.on_touch({&read, 1}, nullptr);
        static_cast<void>(memory_.device->program().touch(range, false));
        return true;
      }
      default:
        touch(residency, range, nullptr);
        static_cast<void>(memory_.device->program().touch(range, true));
        return true;
    }
  }

  changing_budget& memory_;
};

}  // namespace rmm_uvm::tests
