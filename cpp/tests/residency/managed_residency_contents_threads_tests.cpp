// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// The content property with several threads, each with streams of its own and every kind of stream.
#include "../support/live_contents.hpp"
#include "../support/threads.hpp"

#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace rmm_uvm {
namespace {

using tests::thread_count;

/** @brief Legacy by both names, per-thread, and one that a program made. */
std::array<stream_handle, 4> const streams{nullptr,
                                           reinterpret_cast<stream_handle>(std::uintptr_t{1}),
                                           reinterpret_cast<stream_handle>(std::uintptr_t{2}),
                                           reinterpret_cast<stream_handle>(std::uintptr_t{0x5000})};

TEST(ConcurrentContents, HoldOverThreadsThatShareBlocks)
{
  tests::live_contents contents;
  managed_residency residency{contents.device, make_epoch_source(*contents.device)};
  residency.on_slab(contents.slab, nullptr, prefetch_mode::automatic);
  std::atomic<std::size_t> lost{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    auto const enact = [&](memory_range allocation, stream_handle stream) {
      residency.on_allocate(allocation, stream, prefetch_mode::automatic);
    };
    lost += contents.run(enact, streams[index % streams.size()], 100 + index, 125);
  });
  EXPECT_EQ(lost, 0U);
  EXPECT_GT(residency.statistics().discarded_bytes, 0U);
  EXPECT_EQ(residency.statistics().failed_calls, 0U);
}

TEST(ConcurrentContents, HoldWithSeveralStreamsOnEachThread)
{
  tests::live_contents contents;
  managed_residency residency{contents.device, make_epoch_source(*contents.device)};
  residency.on_slab(contents.slab, nullptr, prefetch_mode::automatic);
  std::atomic<std::size_t> lost{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    std::size_t next = index;
    auto const enact = [&](memory_range allocation, stream_handle /*stream*/) {
      residency.on_allocate(allocation, streams[next++ % streams.size()], prefetch_mode::automatic);
    };
    lost += contents.run(enact, nullptr, 200 + index, 125);
  });
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace rmm_uvm
