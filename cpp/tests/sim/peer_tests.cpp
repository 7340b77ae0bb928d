// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Several GPUs: where pages come from, and what goes where.
// Figures are worked out from open-gpu-kernel-modules 580.142.
#include "../support/modelled.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;
using tests::modelled;

TEST(Peers, PagesMoveBetweenGpusAndTheEmptyChunkStays)
{
  modelled given{4, 4, 2};
  given.touch(given.range, true, 0);
  given.touch(given.range, false, 1);
  EXPECT_EQ(given.counters().peer_bytes, blocks(4));
  EXPECT_EQ(given.counters().to_host_bytes, 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), 0U);
  EXPECT_EQ(given.model.resident_bytes(given.range, 1), blocks(4));
  EXPECT_EQ(given.model.free_bytes(0), 0U);  // reclaimed when somebody asks
}

TEST(Peers, EvictionGoesToTheHostEvenWhenAPeerIsIdle)
{
  modelled given{2, 4, 2};
  given.touch(given.range, true, 0);
  EXPECT_EQ(given.counters().to_host_bytes, blocks(2));
  EXPECT_EQ(given.counters().peer_bytes, 0U);
}

TEST(Peers, PrefetchWithoutPeerAccessDoesNothing)
{
  model_config config;
  config.peers = false;
  modelled given{4, 4, 2, config};
  given.touch(given.block(0, 2), true, 0);
  ASSERT_TRUE(given.model.prefetch(given.range, 1, 0).ok());
  EXPECT_EQ(given.model.resident_bytes(given.block(0, 2), 0), blocks(2));
  EXPECT_EQ(given.model.resident_bytes(given.block(2, 2), 1), blocks(2));
}

TEST(Peers, WithoutPeerAccessFaultsGoByWayOfTheHost)
{
  auto const nanoseconds = [](bool peers) {
    model_config config;
    config.peers = peers;
    modelled given{4, 4, 2, config};
    given.touch(given.range, true, 0);
    given.model.synchronize();
    auto const begin = given.model.now_ns();
    given.touch(given.range, false, 1);
    given.model.synchronize();
    return given.model.now_ns() - begin;
  };
  EXPECT_GT(nanoseconds(false), nanoseconds(true));
}

TEST(Peers, AccessedByReadsThePeersMemory)
{
  modelled given{4, 4, 2};
  given.touch(given.range, true, 0);
  ASSERT_TRUE(given.model.advise(given.range, advice::preferred_location, 0).ok());
  ASSERT_TRUE(given.model.advise(given.range, advice::accessed_by, 1).ok());
  given.touch(given.range, false, 1);
  EXPECT_EQ(given.counters().remote_bytes, blocks(4));
  EXPECT_EQ(given.model.resident_bytes(given.range, 0), blocks(4));
}

TEST(Peers, CopyOfWhatIsReadMostlyComesFromAPeerThatHasOne)
{
  auto const copied = [](bool peers, double peer_bytes_per_ns) {
    model_config config;
    config.peers                     = peers;
    config.machine.peer_bytes_per_ns = peer_bytes_per_ns;
    modelled given{4, 4, 2, config};
    EXPECT_TRUE(given.model.cpu_touch(given.range, true).ok());
    EXPECT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok());
    given.touch(given.range, false, 0);
    given.touch(given.range, false, 1);
    EXPECT_EQ(given.model.resident_bytes(given.range, -1), blocks(4));
    return std::pair{given.counters().to_device_bytes, given.counters().peer_bytes};
  };
  EXPECT_EQ(copied(true, 200), (std::pair{blocks(4), blocks(4)}));
  EXPECT_EQ(copied(false, 200), (std::pair{blocks(8), blocks(0)}));
  EXPECT_EQ(copied(true, 0), (std::pair{blocks(8), blocks(0)}));
}

TEST(Peers, CopyByWayOfTheHostLeavesOneThere)
{
  auto const on_host = [](bool peers) {
    model_config config;
    config.peers = peers;
    modelled given{4, 4, 2, config};
    EXPECT_TRUE(given.model.advise(given.range, advice::read_mostly, 0).ok());
    given.touch(given.range, false, 0);
    given.touch(given.range, false, 1);
    EXPECT_EQ(given.counters().host_page_bytes, peers ? 0 : blocks(4));
    return given.model.resident_bytes(given.range, -1);
  };
  EXPECT_EQ(on_host(false), blocks(4));
  EXPECT_EQ(on_host(true), 0U);
}

TEST(Peers, WithoutPeerAccessAndHostMemoryPagesCannotMove)
{
  model_config config;
  config.peers      = false;
  config.host_bytes = page_bytes;
  modelled given{4, 4, 2, config};
  given.touch(given.range, true, 0);
  kernel_access const access{given.range, {}, false};
  EXPECT_EQ(given.model.launch({.accesses = {&access, 1}, .gpu = 1}).code,
            status_code::out_of_memory);
}

}  // namespace
}  // namespace rmm_uvm::sim
