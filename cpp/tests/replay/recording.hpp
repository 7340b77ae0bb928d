// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/blocks.hpp"

#include <rmm_uvm/replay/replayer.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace rmm_uvm::replay::tests {

using rmm_uvm::tests::blocks;

inline constexpr std::uintptr_t recorded_slab = std::uintptr_t{1} << 46U;  ///< no address of ours

/** @brief A recorded program, built line by line; addresses and sizes count blocks. */
class recording {
 public:
  recording& allocate(double first, double count)
  {
    return add(event_kind::allocate, 0, first, count);
  }
  recording& free(double first, double count) { return add(event_kind::free, 0, first, count); }
  recording& read(double first, double count) { return add(event_kind::touch, 0, first, count); }
  recording& write(double first, double count)
  {
    return add(event_kind::touch, writes, first, count);
  }
  recording& cpu_read(double first, double count)
  {
    return add(event_kind::touch, by_the_cpu, first, count);
  }
  /** @brief Later events belong to this stage. */
  recording& stage(std::uint16_t number)
  {
    stage_ = number;
    return *this;
  }
  /** @brief Later events are this much later. */
  recording& pause(std::uint64_t ns)
  {
    time_ns_ += ns;
    return *this;
  }
  std::vector<replay_event> events;

 private:
  recording& add(event_kind kind, std::uint8_t flags, double first, double count)
  {
    auto const block = static_cast<double>(va_block_bytes);
    events.push_back({kind,
                      flags,
                      stage_,
                      0,
                      recorded_slab + static_cast<std::uint64_t>(first * block),
                      static_cast<std::uint64_t>(count * block),
                      time_ns_});
    return *this;
  }
  std::uint16_t stage_{0};
  std::uint64_t time_ns_{0};
};

/** @brief A device to replay on, sizes in blocks. */
[[nodiscard]] inline std::shared_ptr<sim::simulated_device> make_device(
  std::size_t capacity_blocks, std::size_t host_bytes = ~std::size_t{0})
{
  sim::simulated_device_config config;
  config.capacity_bytes = blocks(capacity_blocks);
  config.host_bytes     = host_bytes;
  return std::make_shared<sim::simulated_device>(config);
}

/** @brief A replayer with one slab. */
[[nodiscard]] inline std::unique_ptr<replayer> make_replayer(
  std::shared_ptr<sim::simulated_device> device,
  std::size_t slab_blocks,
  replay_settings const& settings)
{
  std::vector<memory_range> const slabs{{recorded_slab, blocks(slab_blocks)}};
  return std::make_unique<replayer>(std::move(device), slabs, settings);
}

}  // namespace rmm_uvm::replay::tests
