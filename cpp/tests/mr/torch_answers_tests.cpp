// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/simulated_chain.hpp"

#include <rmm_uvm/mr/torch_answers.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::simulated_chain;

constexpr int device                = 7;  // of nobody else
constexpr std::size_t segment_bytes = blocks(2);
constexpr auto bytes                = static_cast<std::ptrdiff_t>(segment_bytes);

/** @brief Segments for torch, and whether they are still there. */
class TorchAnswers : public testing::Test {
 protected:
  ~TorchAnswers() override { answer_torch(device, nullptr); }

  [[nodiscard]] static std::shared_ptr<torch_segments> make(simulated_chain& chain)
  {
    return std::make_shared<torch_segments>(
      chain.managed, chain.residency, blocks(simulated_chain::limit_blocks));
  }
  /** @brief Has the answers hold the only ones. @return what is left of them */
  [[nodiscard]] std::weak_ptr<torch_segments> hand_over()
  {
    answer_torch(device, segments);
    return std::exchange(segments, nullptr);
  }

  simulated_chain chain;
  std::shared_ptr<torch_segments> segments = make(chain);
};

TEST_F(TorchAnswers, DeviceWithoutAnAnswerHasNoMemory)
{
  EXPECT_EQ(rmm_uvm_torch_allocate(static_cast<std::ptrdiff_t>(blocks(1)), device + 1, nullptr),
            nullptr);
  int local = 0;
  rmm_uvm_torch_deallocate(&local, 4, device + 1, nullptr);  // of nobody: not touched
}

TEST_F(TorchAnswers, EachDeviceIsAnsweredByItsOwn)
{
  answer_torch(device, segments);
  auto* const segment = rmm_uvm_torch_allocate(bytes, device, nullptr);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(rmm_uvm_torch_allocate(0, device, nullptr), nullptr);
  EXPECT_EQ(rmm_uvm_torch_allocate(-1, device, nullptr), nullptr);
  rmm_uvm_torch_deallocate(segment, bytes, device + 1, nullptr);
  EXPECT_EQ(segments->statistics().segment_bytes, segment_bytes);  // not that device's
  rmm_uvm_torch_deallocate(segment, bytes, device, nullptr);
  EXPECT_EQ(segments->statistics().segment_bytes, 0U);
}

TEST_F(TorchAnswers, SegmentIsGivenBackToWhomItIsFromAfterAnotherOneAnswers)
{
  answer_torch(device, segments);
  auto* const segment = rmm_uvm_torch_allocate(bytes, device, nullptr);
  auto const second   = make(chain);
  answer_torch(device, second);
  auto* const other = rmm_uvm_torch_allocate(bytes, device, nullptr);
  EXPECT_EQ(second->statistics().segments, 1U);
  rmm_uvm_torch_deallocate(segment, bytes, device, nullptr);
  EXPECT_EQ(segments->statistics().segment_bytes, 0U);
  answer_torch(device, nullptr);  // nobody: what there is can still be given back
  EXPECT_EQ(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
  rmm_uvm_torch_deallocate(other, bytes, device, nullptr);
  EXPECT_EQ(second->statistics().segment_bytes, 0U);
}

TEST_F(TorchAnswers, WhoHandsOutStaysAlthoughItHasNothing)
{
  auto const left = hand_over();
  rmm_uvm_torch_deallocate(rmm_uvm_torch_allocate(bytes, device, nullptr), bytes, device, nullptr);
  EXPECT_FALSE(left.expired());
  EXPECT_NE(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
}

TEST_F(TorchAnswers, WhoHasNothingGoesWhenItLeaves)
{
  auto const left = hand_over();
  leave_torch(device, left.lock());
  EXPECT_TRUE(left.expired());
  EXPECT_EQ(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
}

TEST_F(TorchAnswers, WhoHasNothingGoesWhenAnotherOneAnswers)
{
  auto const left = hand_over();
  answer_torch(device, make(chain));
  EXPECT_TRUE(left.expired());
}

TEST_F(TorchAnswers, WhoLeavesGoesWithItsLastSegment)
{
  auto const left    = hand_over();
  auto* const first  = rmm_uvm_torch_allocate(bytes, device, nullptr);
  auto* const second = rmm_uvm_torch_allocate(bytes, device, nullptr);
  leave_torch(device, left.lock());
  EXPECT_EQ(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
  rmm_uvm_torch_deallocate(first, bytes, device, nullptr);
  EXPECT_FALSE(left.expired());
  rmm_uvm_torch_deallocate(second, bytes - 1, device, nullptr);  // not so: it has it still
  EXPECT_FALSE(left.expired());
  rmm_uvm_torch_deallocate(second, bytes, device, nullptr);
  EXPECT_TRUE(left.expired());
  EXPECT_EQ(chain.managed.slab_bytes(), 0U);
  rmm_uvm_torch_deallocate(second, bytes, device, nullptr);  // of nobody: not touched
}

TEST_F(TorchAnswers, WhoLeavesAndAnswersAgainStays)
{
  auto const left     = hand_over();
  auto* const segment = rmm_uvm_torch_allocate(bytes, device, nullptr);
  leave_torch(device, left.lock());
  answer_torch(device, left.lock());
  rmm_uvm_torch_deallocate(segment, bytes, device, nullptr);
  ASSERT_FALSE(left.expired());
  EXPECT_NE(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
  EXPECT_EQ(left.lock()->statistics().segments, 2U);
}

TEST_F(TorchAnswers, WhoAnswersIsNotSilencedByOneThatLeavesLate)
{
  auto const first = segments;
  answer_torch(device, first);
  auto const second = make(chain);
  answer_torch(device, second);
  leave_torch(device, first);
  leave_torch(device + 1, second);
  leave_torch(device, nullptr);
  EXPECT_NE(rmm_uvm_torch_allocate(bytes, device, nullptr), nullptr);
  EXPECT_EQ(second->statistics().segments, 1U);
}

TEST_F(TorchAnswers, WhoIsLetGoGoesWithoutTheLock)
{
  // Its destructor ends with memory that torch may give back meanwhile: that must not wait.
  struct ends_with {
    std::shared_ptr<torch_segments> others;
    ~ends_with() { leave_torch(device + 1, others); }
  };
  auto const others = make(chain);
  answer_torch(device + 1, others);
  {
    auto const held = std::make_shared<ends_with>(others);
    auto both       = make(chain);
    answer_torch(device,
                 std::shared_ptr<torch_segments>{
                   both.get(), [both, held](torch_segments*) mutable { both.reset(); }});
  }
  answer_torch(device, nullptr);
  EXPECT_EQ(rmm_uvm_torch_allocate(bytes, device + 1, nullptr), nullptr);
}

}  // namespace
}  // namespace rmm_uvm::mr
