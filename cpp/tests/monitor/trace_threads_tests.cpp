// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/trace_file.hpp"

#include <rmm_uvm/monitor/trace_writer.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

TEST(TraceWriterThreads, EventsSamplesFlushesAndCloseAtOnceLoseNothingBeforeTheEnd)
{
  constexpr int workers = 8;
  constexpr int rounds  = 2000;
  tests::trace_file const file;
  trace_writer writer{file.for_writer(), "{}", trace_writer::monotonic_ns()};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&writer, worker] {
      memory_range const range{0x1000'0000U * (static_cast<std::uintptr_t>(worker) + 1), 4096};
      for (int round = 0; round < rounds; ++round) {
        writer.allocated(worker, range, nullptr);
        writer.freed(worker, range, nullptr);
      }
    });
  }
  std::thread flusher{[&] {
    std::vector<sample> const rows(3);
    while (!done.load()) {
      writer.flush();
      writer.samples(rows);
      (void)writer.counts();
      (void)writer.failure();
    }
  }};
  for (auto& thread : threads) {
    thread.join();
  }
  done.store(true);
  flusher.join();
  std::thread late{[&] { writer.allocated(0, {4096, 8}, nullptr); }};
  writer.close();
  late.join();

  tests::read_trace const trace{file.bytes()};
  EXPECT_EQ(writer.failure(), "");
  std::vector<int> seen(workers);
  for (auto const& event : trace.contents.events) {
    if (event.bytes != 8) { ++seen[static_cast<std::size_t>(event.device_id)]; }
  }
  EXPECT_EQ(seen, std::vector<int>(workers, 2 * rounds));
}

}  // namespace
}  // namespace rmm_uvm::monitor
