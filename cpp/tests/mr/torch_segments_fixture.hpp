// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/simulated_chain.hpp"

#include <rmm_uvm/mr/torch_segments.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rmm_uvm::tests {

[[nodiscard]] inline std::uintptr_t address_of(void const* segment) noexcept
{
  return reinterpret_cast<std::uintptr_t>(segment);
}

/** @brief Segments over a simulated device with a budget of 16 blocks, and a cap of 64. */
class TorchSegments : public testing::Test {
 protected:
  static constexpr std::size_t budget_blocks  = 16;
  static constexpr std::size_t maximum_blocks = 64;

  TorchSegments()
  {
    settings.background = false;
    chain.residency->start_budget(settings);
  }
  [[nodiscard]] static std::shared_ptr<mr::torch_segments> make(simulated_chain& chain)
  {
    return std::make_shared<mr::torch_segments>(
      chain.managed, chain.residency, blocks(maximum_blocks));
  }
  [[nodiscard]] void* take(std::size_t count) { return segments->allocate(blocks(count), nullptr); }
  [[nodiscard]] residency_statistics residency() const
  {
    return chain.residency->budget_statistics().value();
  }

  residency_settings settings = residency_settings::of(blocks(budget_blocks));
  simulated_chain chain;
  std::shared_ptr<mr::torch_segments> segments = make(chain);
};

}  // namespace rmm_uvm::tests
