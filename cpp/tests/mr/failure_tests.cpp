// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Failures in the middle of an allocation: driver calls and our own memory fail at call 1 to n in
// turn, and account, ledger and device must be as if nothing had been asked.
#include "../support/failing_new.hpp"
#include "../support/simulated_chain.hpp"

#include <rmm/error.hpp>

#include <gtest/gtest.h>

#include <new>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;
using tests::simulated_chain;

void expect_nothing_taken(simulated_chain const& chain)
{
  EXPECT_EQ(chain.account->used_bytes(), 0U);
  EXPECT_EQ(chain.managed.slab_bytes(), 0U);
  EXPECT_EQ(chain.adaptor.allocated_bytes(), 0U);
  EXPECT_EQ(chain.device->view().statistics().managed_bytes, 0U);
  EXPECT_EQ(chain.device->view().statistics().resident_bytes, 0U);
}

TEST(Failure, RefusedManagedMemoryTakesNothing)
{
  simulated_chain chain;
  chain.device->answers().plan("allocate_managed", {status_code::out_of_memory, 2, "planned"}, 0);
  EXPECT_THROW(static_cast<void>(chain.adaptor.allocate(default_stream, blocks(2), 256)),
               rmm::out_of_memory);
  expect_nothing_taken(chain);
}

TEST(Failure, OtherDriverErrorsAreBadAllocAndNotOutOfMemory)
{
  simulated_chain chain;
  chain.device->answers().plan("allocate_managed", {status_code::driver_error, 700, "planned"}, 0);
  try {
    static_cast<void>(chain.adaptor.allocate(default_stream, blocks(2), 256));
    FAIL() << "no error";
  } catch (rmm::out_of_memory const&) {
    FAIL() << "not a lack of memory";
  } catch (rmm::bad_alloc const& error) {
    EXPECT_NE(std::string{error.what()}.find("700"), std::string::npos);
  }
  expect_nothing_taken(chain);
}

TEST(Failure, RefusedPrefetchStillGivesTheMemory)
{
  for (auto const* call : {"memory", "prefetch"}) {
    simulated_chain chain;
    chain.device->answers().plan(call, {status_code::driver_error, 700, "planned"}, 0);
    auto* const ptr = chain.adaptor.allocate(default_stream, blocks(2), 256);
    EXPECT_NE(ptr, nullptr) << call;
    EXPECT_EQ(chain.residency->statistics().failed_calls, 1U) << call;
    chain.adaptor.deallocate(default_stream, ptr, blocks(2), 256);
    expect_nothing_taken(chain);
  }
}

TEST(Failure, RefusedDriverFreeKeepsTheBooks)
{
  simulated_chain chain;
  auto* const ptr = chain.adaptor.allocate(default_stream, blocks(2), 256);
  chain.device->answers().plan("free_managed", {status_code::driver_error, 700, "planned"}, 0);
  chain.adaptor.deallocate(default_stream, ptr, blocks(2), 256);
  EXPECT_EQ(chain.account->used_bytes(), 0U);
  EXPECT_EQ(chain.managed.slab_bytes(), 0U);
}

TEST(Failure, OwnMemoryMayFailAtAnyPointOfAnAllocation)
{
  std::size_t failures = 0;
  for (std::size_t nth = 0;; ++nth) {
    simulated_chain chain;
    void* ptr = nullptr;
    bool over = false;
    {
      tests::failing_new const failing{nth};
      try {
        ptr = chain.adaptor.allocate(default_stream, blocks(2), 256);
      } catch (std::bad_alloc const&) {
        ptr = nullptr;
      }
      over = !tests::failing_new::has_failed();
    }
    if (over) { break; }
    ++failures;
    if (ptr != nullptr) {  // a failure that costs only the prefetch
      EXPECT_EQ(chain.account->used_bytes(), blocks(2));
      chain.adaptor.deallocate(default_stream, ptr, blocks(2), 256);
    }
    expect_nothing_taken(chain);
    ASSERT_LT(nth, 100U);
  }
  EXPECT_GT(failures, 4U);  // the allocation was put to the test
}

}  // namespace
}  // namespace rmm_uvm::mr
