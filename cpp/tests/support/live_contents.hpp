// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "blocks.hpp"
#include "first_fit.hpp"

#include <rmm_uvm/sim/simulated_device.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace rmm_uvm::tests {

/** @brief Makes an allocation usable: the residency, or a variant of it that a test made. */
using enactor = std::function<void(memory_range allocation, stream_handle stream)>;

/**
 * @brief A slab with real bytes behind it, cut into random live allocations that are checked.
 *
 * A discard scribbles over its pages there, so one that reaches a live neighbour is seen when the
 * neighbour is checked. The simulated device does everything in call order: what is tested is which
 * ranges are discarded, not the order of streams (see side_stream_tests.cpp for that).
 */
class live_contents {
 public:
  static constexpr std::size_t slab_blocks = 24;

  live_contents()
    : device{std::make_shared<sim::simulated_device>(configuration())},
      slab{allocate(*device)},
      pool{slab}
  {
  }

  /**
   * @brief Allocates, checks, frees and evicts at random.
   * @param enact called for each new allocation, before it is written
   * @param stream in the order of which everything is asked for
   * @param seed of the random choices
   * @return allocations whose contents did not hold
   */
  [[nodiscard]] std::size_t run(enactor const& enact,
                                stream_handle stream,
                                std::uint64_t seed,
                                int steps)
  {
    std::mt19937_64 random{seed};
    std::vector<allocation> live;
    std::size_t lost = 0;
    for (int step = 0; step < steps; ++step) {
      auto const choice = random() % 10;
      if (choice == 0) {
        evict_some(random, stream);
      } else if (choice < 6 || live.empty()) {
        take_one(enact, stream, random, live);
      } else {
        std::swap(live[random() % live.size()], live.back());
        lost += give_back(live.back()) ? 0 : 1;
        live.pop_back();
      }
    }
    for (auto const& one : live) {
      lost += give_back(one) ? 0 : 1;
    }
    return lost;
  }

  std::shared_ptr<sim::simulated_device> device;
  memory_range slab;
  first_fit pool;

 private:
  struct allocation {
    memory_range range;
    unsigned char value;
  };

  [[nodiscard]] static sim::simulated_device_config configuration()
  {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(128);  // room for the slab beside its prefetch's headroom
    config.backing        = true;
    return config;
  }
  [[nodiscard]] static memory_range allocate(sim::simulated_device& device)
  {
    memory_range slab{0, blocks(slab_blocks) - 4096};  // the last block is cut off
    static_cast<void>(device.allocate_managed(slab.bytes, slab.address));
    return slab;
  }

  /** @brief From 1 byte to 7 MiB, small ones most often. */
  [[nodiscard]] static std::size_t random_bytes(std::mt19937_64& random)
  {
    static constexpr std::size_t most[] = {256, 4'096, 1 << 19, 7 << 20};  // NOLINT
    return 1 + random() % most[random() % 4];
  }

  void take_one(enactor const& enact,
                stream_handle stream,
                std::mt19937_64& random,
                std::vector<allocation>& live)
  {
    auto const bytes   = random_bytes(random);
    auto const address = pool.take(bytes);
    if (!address) { return; }
    auto const value = static_cast<unsigned char>(1 + random() % 200);
    enact({*address, bytes}, stream);
    static_cast<void>(device->program().touch({*address, bytes}, true));
    std::memset(reinterpret_cast<void*>(*address), value, bytes);
    live.push_back({{*address, bytes}, value});
  }

  [[nodiscard]] bool give_back(allocation const& one)
  {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(one.range.address);
    auto const held =
      bytes[0] == one.value && std::memcmp(bytes, bytes + 1, one.range.bytes - 1) == 0;
    pool.give(one.range.address, one.range.bytes);
    return held;
  }

  /** @brief Sends some blocks to the host, so that they come into doubt; contents stay. */
  void evict_some(std::mt19937_64& random, stream_handle stream)
  {
    auto const first = random() % (slab_blocks - 4);
    static_cast<void>(
      device->prefetch(block_range(slab.address, first, 4), location::host(), stream));
  }
};

}  // namespace rmm_uvm::tests
