// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "blocks.hpp"

#include <rmm_uvm/sim/uvm_model.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace rmm_uvm::tests {

/** @brief A model with GPUs of `capacity` blocks, and one managed range. */
struct modelled {
  explicit modelled(std::size_t capacity,
                    std::size_t managed,
                    unsigned gpus            = 1,
                    sim::model_config config = {})
    : model{sized(std::move(config), capacity, gpus)}
  {
    model.add_range(range = {std::uintptr_t{1} << 40U, blocks(managed)});
  }
  [[nodiscard]] static sim::model_config sized(sim::model_config config,
                                               std::size_t capacity,
                                               unsigned gpus)
  {
    config.device_bytes = blocks(capacity);
    config.gpus         = gpus;
    return config;
  }
  [[nodiscard]] memory_range block(std::size_t first, std::size_t count = 1) const
  {
    return block_range(range.address, first, count);
  }
  void kernel(std::vector<sim::kernel_access> const& accesses, sim::kernel_launch launch = {})
  {
    launch.accesses = accesses;
    ASSERT_TRUE(model.launch(launch).ok());
  }
  void touch(memory_range what, bool write = true, unsigned gpu = 0)
  {
    kernel({{what, {}, write}}, {.gpu = gpu});
  }
  void pages(memory_range what, std::vector<std::uint64_t> listed, bool write = true)
  {
    sim::access_pattern pattern{.kind = sim::pattern_kind::recorded};
    pattern.pages = std::make_shared<std::vector<std::uint64_t> const>(std::move(listed));
    kernel({{what, pattern, write}});
  }
  [[nodiscard]] sim::model_counters const& counters() const { return model.counters(); }

  sim::uvm_model model;
  memory_range range;
};

}  // namespace rmm_uvm::tests
