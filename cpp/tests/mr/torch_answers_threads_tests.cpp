// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Torch's segments, taken and given back by eight threads while their source leaves; also run by
// the thread sanitizer.
#include "../support/simulated_chain.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/mr/torch_answers.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::simulated_chain;
using tests::thread_count;

constexpr int device                = 8;  // of nobody else
constexpr std::size_t segment_bytes = blocks(2);
/** @brief Takes segments, and gives back the oldest, until nobody answers. */
void take_and_give_back()
{
  auto const bytes = static_cast<std::ptrdiff_t>(segment_bytes);
  std::vector<void*> held;
  while (auto* const segment = rmm_uvm_torch_allocate(bytes, device, nullptr)) {
    held.push_back(segment);
    if (held.size() == 4) {
      rmm_uvm_torch_deallocate(held.front(), bytes, device, nullptr);
      held.erase(held.begin());
    }
  }
  for (auto* const segment : held) {
    rmm_uvm_torch_deallocate(segment, bytes, device, nullptr);
  }
}

TEST(ConcurrentTorchAnswers, ThreadsThatTakeAndGiveBackWhileItLeavesLoseNothing)
{
  simulated_chain chain;
  for (int round = 0; round < 30; ++round) {
    auto segments = std::make_shared<torch_segments>(
      chain.managed, chain.residency, blocks(simulated_chain::limit_blocks));
    std::weak_ptr<torch_segments> const left{segments};
    answer_torch(device, std::move(segments));
    std::atomic<std::size_t> ready{0};
    tests::on_threads(thread_count + 1, [&](std::size_t index) {
      if (index < thread_count) {
        ++ready;
        take_and_give_back();
        return;
      }
      while (ready.load() < thread_count) {
        std::this_thread::yield();
      }
      leave_torch(device, left.lock());
    });
    ASSERT_TRUE(left.expired()) << round;
    ASSERT_EQ(chain.managed.slab_bytes(), 0U) << round;
  }
}

}  // namespace
}  // namespace rmm_uvm::mr
