// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Readers and the exporter at once, each an owner of its own as if in a process of its own.
#include "../support/lease_files.hpp"

#include <rmm_uvm/ipc/lease_file.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace rmm_uvm::ipc {
namespace {

constexpr int readers_count = 4;
constexpr int leases_count  = 300;

/**
 * @brief Every lease may be opened twice and is wanted by four: exactly two get it, and none after
 * its end, which the readers see in what the lease is of.
 */
TEST(LeaseFileThreads, LeaseIsNeverOpenAfterItsEndNorOpenedTooOften)
{
  tests::shared_leases const shared{1};
  auto const exporter = shared.exporter();
  std::atomic<std::uint64_t> offered{0};  // generation + 1 of the lease that is on offer
  std::atomic<std::uint64_t> live{0};     // what the leased memory holds: its generation + 1
  std::atomic<int> opened{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> finished{false};

  std::vector<std::thread> readers;
  for (int i = 0; i < readers_count; ++i) {
    readers.emplace_back([&] {
      auto const own = shared.open();
      while (!finished.load()) {
        auto const wanted = offered.load();
        if (wanted == 0 || own->open_lease(0, wanted - 1, false) != lease_answer::opened) {
          std::this_thread::yield();
          continue;
        }
        if (live.load() != wanted) { wrong.fetch_add(1); }
        opened.fetch_add(1);
        if (live.load() != wanted) { wrong.fetch_add(1); }
        static_cast<void>(own->close_lease(0));
      }
    });
  }
  for (int i = 0; i < leases_count; ++i) {
    auto const generation = exporter->begin(0, 2);
    live.store(generation + 1);
    offered.store(generation + 1);
    while (exporter->read(0).opened < 2 || exporter->try_end(0) != 0) {
      std::this_thread::yield();
    }
    live.store(0);
  }
  finished.store(true);
  for (auto& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(opened.load(), 2 * leases_count);
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace rmm_uvm::ipc
