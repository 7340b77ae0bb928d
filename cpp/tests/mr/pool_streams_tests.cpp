// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Pools past their maximum on several streams. RMM's pool tells streams apart only where there is a
// GPU; here is one that does so by the rules of stream_ordered_memory_resource.hpp.
#include "../support/blocks.hpp"
#include "../support/late_driver.hpp"
#include "../support/recording_driver.hpp"

#include <rmm_uvm/mr/managed_memory_resource.hpp>
#include <rmm_uvm/mr/uvm_resource_adaptor.hpp>
#include <rmm_uvm/sim/simulated_device.hpp>

#include <rmm/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;

[[nodiscard]] cuda::stream_ref stream_number(std::uintptr_t number)
{
  return cuda::stream_ref{reinterpret_cast<cudaStream_t>(0x1000 + number)};
}

/**
 * @brief A pool with a list of free pieces for each stream, as RMM's.
 *
 * A stream that is handed a piece of another one's list waits for that one first. Where no list has
 * a piece that is large enough, all are joined before the pool grows. Where it may not grow by so
 * much, it gives back slabs that are free as a whole.
 */
class pool_by_streams {
 public:
  static constexpr std::size_t most_bytes = blocks(4'096);  // of slabs

  /**
   * @param waits false: what must not be, a pool that does not wait for other streams
   * @param halves whether it asks for half of what it may still take, then for half of that, and so
   *        on, as RMM's does; else for what is needed
   */
  pool_by_streams(managed_memory_resource upstream,
                  std::shared_ptr<uvm_driver> driver,
                  bool waits,
                  bool halves)
    : state_{std::make_shared<state>(
        state{std::move(upstream), std::move(driver), waits, halves, {}, {}})}
  {
  }

  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    auto const size = aligned(bytes);
    auto& own       = state_->free[stream.get()];
    if (auto const found = taken_from(own, size)) { return pointer(found); }
    for (auto& [other, pieces] : state_->free) {
      if (auto const found = taken_from(pieces, size)) {
        wait_for(stream, other);
        return pointer(found);
      }
    }
    for (auto& [other, pieces] : state_->free) {
      if (&pieces == &own) { continue; }
      wait_for(stream, other);
      for (auto const& [address, free_bytes] : pieces) {
        insert(own, {address, free_bytes});
      }
      pieces.clear();
    }
    if (auto const found = taken_from(own, size)) { return pointer(found); }
    if (size > most_bytes - taken_bytes()) { give_back(stream, own); }
    if (size > most_bytes - taken_bytes()) { throw rmm::out_of_memory{"pool is full"}; }
    auto const slab = grow(stream, size, alignment);
    if (slab.bytes > size) { insert(own, {slab.address + size, slab.bytes - size}); }
    return pointer(slab.address);
  }
  void deallocate(cuda::stream_ref stream,
                  void* ptr,
                  std::size_t bytes,
                  std::size_t /*alignment*/) noexcept
  {
    insert(state_->free[stream.get()], {reinterpret_cast<std::uintptr_t>(ptr), aligned(bytes)});
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    return allocate(stream_number(0), bytes, alignment);
  }
  void deallocate_sync(void* ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    deallocate(stream_number(0), ptr, bytes, alignment);
  }
  bool operator==(pool_by_streams const& other) const noexcept { return state_ == other.state_; }
  friend void get_property(pool_by_streams const&, cuda::mr::device_accessible) noexcept {}

 private:
  using piece_map = std::map<std::uintptr_t, std::size_t>;
  struct state {
    managed_memory_resource upstream;
    std::shared_ptr<uvm_driver> driver;
    bool waits;
    bool halves;
    std::map<stream_handle, piece_map> free;
    piece_map slabs;
  };

  [[nodiscard]] std::size_t taken_bytes() const
  {
    std::size_t bytes = 0;
    for (auto const& slab : state_->slabs) {
      bytes += slab.second;
    }
    return bytes;
  }
  [[nodiscard]] memory_range grow(cuda::stream_ref stream, std::size_t size, std::size_t alignment)
  {
    auto bytes = state_->halves ? std::max(size, aligned((most_bytes - taken_bytes()) / 2)) : size;
    while (true) {
      try {
        auto* const slab   = state_->upstream.allocate(stream, bytes, alignment);
        auto const address = reinterpret_cast<std::uintptr_t>(slab);
        state_->slabs.emplace(address, bytes);
        return {address, bytes};
      } catch (rmm::out_of_memory const&) {
        if (bytes == size) { throw; }
        bytes = std::max(size, aligned(bytes / 2));
      }
    }
  }
  void give_back(cuda::stream_ref stream, piece_map& own) const
  {
    std::erase_if(state_->slabs, [&](auto const& slab) {
      auto const piece = own.find(slab.first);
      if (piece == own.end() || piece->second != slab.second) { return false; }
      own.erase(piece);
      state_->upstream.deallocate(stream, pointer(slab.first), slab.second, 256);
      return true;
    });
  }

  [[nodiscard]] static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  [[nodiscard]] static void* pointer(std::uintptr_t address)
  {
    return reinterpret_cast<void*>(address);
  }
  [[nodiscard]] static std::uintptr_t taken_from(piece_map& pieces, std::size_t size)
  {
    auto best = pieces.end();
    for (auto it = pieces.begin(); it != pieces.end(); ++it) {
      if (it->second >= size && (best == pieces.end() || it->second < best->second)) { best = it; }
    }
    if (best == pieces.end()) { return 0; }
    auto const [address, bytes] = *best;
    pieces.erase(best);
    if (bytes > size) { pieces.emplace(address + size, bytes - size); }
    return address;
  }
  void insert(piece_map& pieces, memory_range piece) const
  {
    auto const next = pieces.find(piece.end());
    if (next != pieces.end() && !state_->slabs.contains(piece.end())) {
      piece.bytes += next->second;
      pieces.erase(next);
    }
    auto const after = pieces.lower_bound(piece.address);
    if (after != pieces.begin() && !state_->slabs.contains(piece.address)) {
      auto const before = std::prev(after);
      if (before->first + before->second == piece.address) {
        before->second += piece.bytes;
        return;
      }
    }
    pieces.emplace(piece.address, piece.bytes);
  }
  void wait_for(cuda::stream_ref stream, stream_handle other) const
  {
    if (state_->waits) { static_cast<void>(state_->driver->order(stream.get(), other)); }
  }

  std::shared_ptr<state> state_;
};

/** @brief An adaptor over such a pool with a maximum of 8 blocks. */
class full_pool {
 public:
  explicit full_pool(std::shared_ptr<uvm_driver> driver, bool waits = true, bool halves = false)
    : residency{std::make_shared<managed_residency>(driver, make_epoch_source(*driver))},
      managed{residency, std::make_shared<managed_account>(), prefetch_mode::automatic},
      adaptor{pool_by_streams{managed, std::move(driver), waits, halves},
              residency,
              prefetch_mode::automatic}
  {
    residency->room().set_maximum(blocks(8), blocks(9));
  }

  [[nodiscard]] memory_range take(cuda::stream_ref stream, std::size_t bytes)
  {
    return {reinterpret_cast<std::uintptr_t>(adaptor.allocate(stream, bytes, 256)), bytes};
  }
  void free(cuda::stream_ref stream, memory_range range)
  {
    adaptor.deallocate(stream, reinterpret_cast<void*>(range.address), range.bytes, 256);
  }

  [[nodiscard]] detail::trim_outcome trim() { return adaptor.trim(pool_by_streams::most_bytes); }

  std::shared_ptr<managed_residency> residency;
  managed_memory_resource managed;
  uvm_resource_adaptor adaptor;
};

/** @brief A device with real bytes, whose streams can be busy. */
class LatePool : public testing::Test {
 protected:
  void write(memory_range range, unsigned char value) const
  {
    static_cast<void>(device->program().touch(range, true));
    std::memset(reinterpret_cast<void*>(range.address), value, range.bytes);
  }
  [[nodiscard]] static bool holds(memory_range range, unsigned char value)
  {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(range.address);
    return bytes[0] == value && std::memcmp(bytes, bytes + 1, range.bytes - 1) == 0;
  }

  /** @return whether a kernel finds what it reads, while its memory is freed behind it */
  [[nodiscard]] bool late_kernel_reads_what_was_written(full_pool& pool) const
  {
    auto const reads = stream_number(1);
    auto const other = stream_number(2);
    auto const freed = pool.take(reads, blocks(4));
    auto const kept  = pool.take(other, blocks(2));
    write(freed, 7);
    write(kept, 8);
    bool found = false;
    driver->keep_busy(reads.get());
    driver->launch(reads.get(), [&] { found = holds(freed, 7); });
    pool.free(reads, freed);
    auto const past = pool.take(other, blocks(6));  // a slab past the maximum: 4 blocks are dead
    EXPECT_EQ(pool.managed.slab_bytes(), blocks(12));
    EXPECT_EQ(pool.residency->room().populated_bytes(), blocks(8));
    driver->catch_up();
    EXPECT_TRUE(holds(kept, 8));
    pool.free(other, past);
    return found;
  }

  std::shared_ptr<sim::simulated_device> device = [] {
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(64);
    config.backing        = true;
    return std::make_shared<sim::simulated_device>(config);
  }();
  std::shared_ptr<tests::late_driver> driver = std::make_shared<tests::late_driver>(device);
};

TEST_F(LatePool, DeadBlocksAreDiscardedAfterTheLastUseInAnotherStream)
{
  full_pool pool{driver};
  EXPECT_TRUE(late_kernel_reads_what_was_written(pool));
}

TEST_F(LatePool, UnderABudgetTheyAreToo)
{
  full_pool pool{driver};
  auto settings       = residency_settings::of(blocks(16));
  settings.background = false;
  pool.residency->start_budget(settings);
  EXPECT_TRUE(late_kernel_reads_what_was_written(pool));
}

TEST_F(LatePool, WithoutThePoolsWaitTheKernelFindsDiscardedMemory)
{
  full_pool pool{driver, false};
  EXPECT_FALSE(late_kernel_reads_what_was_written(pool));
}

TEST_F(LatePool, SlabIsGivenBackAfterItsLastUseInAnotherStream)
{
  full_pool pool{driver};
  auto const uses = stream_number(1);
  auto const kept = pool.take(uses, blocks(3));
  auto const slab = pool.take(uses, blocks(4));
  write(kept, 8);
  write(slab, 7);
  bool found = false;
  driver->keep_busy(uses.get());
  driver->launch(uses.get(), [&] { found = holds(slab, 7); });
  pool.free(uses, slab);
  EXPECT_EQ(pool.trim().given_back_bytes, blocks(4));
  EXPECT_EQ(pool.managed.slab_bytes(), blocks(3));
  EXPECT_TRUE(found);
  EXPECT_TRUE(holds(kept, 8));
  pool.free(uses, kept);
}

TEST_F(LatePool, WhatIsDeadBesideLiveMemoryIsDiscardedAfterItsLastUse)
{
  for (bool const waits : {true, false}) {
    full_pool pool{driver, waits};
    auto const uses = stream_number(1);
    pool.free(uses, pool.take(uses, blocks(6)));
    auto const dead = pool.take(uses, blocks(4));
    auto const kept = pool.take(uses, blocks(2));
    write(dead, 7);
    write(kept, 8);
    bool found = false;
    driver->keep_busy(uses.get());
    driver->launch(uses.get(), [&] { found = holds(dead, 7); });
    pool.free(uses, dead);
    auto const outcome = pool.trim();
    EXPECT_EQ(outcome.given_back_bytes, 0U);
    EXPECT_EQ(outcome.discarded_bytes, blocks(4));
    driver->catch_up();
    EXPECT_EQ(found, waits);  // of a pool that does not wait: what must not be
    EXPECT_EQ(pool.managed.slab_bytes(), blocks(6));
    EXPECT_TRUE(holds(kept, 8));
    auto const again = pool.take(uses, blocks(4));  // of what was discarded
    EXPECT_EQ(pool.managed.slab_bytes(), blocks(6));
    pool.free(uses, again);
    pool.free(uses, kept);
  }
}

TEST_F(LatePool, WithoutTheMaximumOfItsPoolNoSlabIsGivenBack)
{
  full_pool pool{driver};
  auto const stream = stream_number(1);
  pool.free(stream, pool.take(stream, blocks(6)));
  auto const outcome = pool.adaptor.trim(0);
  EXPECT_EQ(outcome.given_back_bytes, 0U);
  EXPECT_EQ(outcome.discarded_bytes, blocks(6));
  EXPECT_EQ(pool.managed.slab_bytes(), blocks(6));
}

TEST_F(LatePool, SlabsPastTheMaximumAreGivenBackToo)
{
  full_pool pool{driver};
  auto const stream = stream_number(1);
  auto const first  = pool.take(stream, blocks(6));
  auto const kept   = pool.take(stream, blocks(1));
  pool.free(stream, first);
  auto const past = pool.take(stream, blocks(7));
  EXPECT_EQ(pool.managed.slab_bytes(), blocks(14));
  EXPECT_EQ(pool.trim().given_back_bytes, blocks(6));
  EXPECT_EQ(pool.residency->room().populated_bytes(), blocks(8));
  EXPECT_THROW(static_cast<void>(pool.take(stream, blocks(1))), rmm::out_of_memory);
  pool.free(stream, past);
  EXPECT_EQ(pool.trim().given_back_bytes, blocks(7));
  pool.free(stream, pool.take(stream, blocks(7)));
  pool.free(stream, kept);
}

/** @brief Kernels on eight streams write what they are handed, and read it before it is freed. */
class eight_streams {
 public:
  eight_streams(full_pool& pool, sim::simulated_device& device, tests::late_driver& driver)
    : pool_{pool}, device_{device}, driver_{driver}
  {
  }

  /** @return how many allocations did not hold what was written */
  [[nodiscard]] int run(unsigned seed, bool trims = false)
  {
    std::mt19937 random{seed};
    for (int turn = 0; turn < 600; ++turn) {
      if (trims && turn % 8 == 0) { given_back_bytes_ += pool_.trim().given_back_bytes; }
      auto const stream = stream_number(random() % 8);
      if (random() % 4 == 0) { driver_.keep_busy(stream.get()); }
      auto const bytes = 1 + random() % (blocks(2) + 700'000);
      while (pool_.adaptor.allocated_bytes() + bytes > blocks(8) - blocks(1)) {
        free(random() % live_.size());
      }
      try {
        take(stream, bytes);
      } catch (rmm::out_of_memory const&) {
        ++refused_;  // live blocks take a tenth more than the maximum
      }
    }
    driver_.catch_up();
    return lost_;
  }
  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] std::size_t given_back_bytes() const { return given_back_bytes_; }

 private:
  struct allocation {
    memory_range range;
    cuda::stream_ref stream;
    unsigned char value;
  };

  void take(cuda::stream_ref stream, std::size_t bytes)
  {
    auto const range = pool_.take(stream, bytes);
    auto const value = static_cast<unsigned char>(++values_ % 200);
    driver_.launch(stream.get(), [this, range, value] {
      static_cast<void>(device_.program().touch(range, true));
      std::memset(reinterpret_cast<void*>(range.address), value, range.bytes);
    });
    live_.push_back({range, stream, value});
  }
  void free(std::size_t index)
  {
    auto const [range, stream, value] = live_[index];
    driver_.launch(stream.get(), [this, range, value] {
      auto const* const bytes = reinterpret_cast<unsigned char const*>(range.address);
      if (bytes[0] != value || std::memcmp(bytes, bytes + 1, range.bytes - 1) != 0) { ++lost_; }
    });
    pool_.free(stream, range);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  full_pool& pool_;
  sim::simulated_device& device_;
  tests::late_driver& driver_;
  std::vector<allocation> live_;
  int values_{0};
  int lost_{0};
  int refused_{0};
  std::size_t given_back_bytes_{0};
};

TEST_F(LatePool, OfEightStreamsNoByteIsLost)
{
  full_pool pool{driver};
  eight_streams program{pool, *device, *driver};
  EXPECT_EQ(program.run(1), 0);
  EXPECT_GT(pool.managed.slab_bytes(), blocks(8));
  EXPECT_GT(device->commands().discarded_bytes, blocks(8));
}

TEST_F(LatePool, OfEightStreamsNoByteIsLostWhereSlabsAreGivenBack)
{
  full_pool pool{driver};
  eight_streams program{pool, *device, *driver};
  EXPECT_EQ(program.run(1, true), 0);
  EXPECT_GT(program.given_back_bytes(), blocks(64));
}

TEST_F(LatePool, OfEightStreamsBytesAreLostWithoutThePoolsWaits)
{
  full_pool pool{driver, false};
  eight_streams program{pool, *device, *driver};
  EXPECT_GT(program.run(1), 0);
}

/** @brief On how many streams, and the sizes of requests. */
struct random_requests {
  std::size_t streams;
  std::size_t least_bytes;
  std::size_t most_bytes;
};

/** @brief Allocates at random, and frees so that it all fits. */
class random_holder {
 public:
  random_holder(full_pool& pool, random_requests requests, unsigned seed)
    : pool_{pool}, requests_{requests}, random_{seed}
  {
  }

  /** @brief Allocates, once so much is freed that no more than `most_live_bytes` are live then. */
  void take(std::size_t most_bytes, std::size_t most_live_bytes)
  {
    auto const stream = stream_number(random_() % requests_.streams);
    auto const least  = requests_.least_bytes;
    auto const bytes  = least + random_() % (most_bytes - least);
    while (pool_.adaptor.allocated_bytes() + bytes > most_live_bytes) {
      std::swap(live_[random_() % live_.size()], live_.back());
      pool_.free(live_.back().second, live_.back().first);
      live_.pop_back();
    }
    live_.emplace_back(pool_.take(stream, bytes), stream);
  }
  /** @brief Allocates, and frees nothing, until it is refused. */
  void fill(std::size_t most_bytes)
  {
    try {
      while (true) {
        take(most_bytes, 2 * pool_.residency->room().maximum_bytes());
      }
    } catch (rmm::out_of_memory const&) {
      return;
    }
  }

 private:
  full_pool& pool_;
  random_requests requests_;
  std::mt19937 random_;
  std::vector<std::pair<memory_range, cuda::stream_ref>> live_;
};

class FullPool : public testing::TestWithParam<random_requests> {};

TEST_P(FullPool, IsRefusedNothingThatFitsAndIsFullAtItsFirstRefusal)
{
#ifdef __SANITIZE_ADDRESS__
  constexpr unsigned seeds = 5;  // a sanitizer makes each slow; builds without one have all
#else
  constexpr unsigned seeds = 25;
#endif
  constexpr auto nearly_all = blocks(256) / 100 * 98;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    sim::simulated_device_config config;
    config.capacity_bytes = blocks(300);
    auto const driver =
      std::make_shared<tests::late_driver>(std::make_shared<sim::simulated_device>(config));
    full_pool pool{driver, true, true};
    auto& room = pool.residency->room();
    room.set_maximum(blocks(256), blocks(281));
    random_holder program{pool, GetParam(), seed};
    for (int turn = 0; turn < 600; ++turn) {
      auto const stream = stream_number(seed % GetParam().streams);
      if (turn % 2 == 0) { driver->keep_busy(stream.get()); }
      ASSERT_NO_THROW(program.take(GetParam().most_bytes, nearly_all)) << turn;
    }
    program.fill(GetParam().least_bytes + blocks(2));
    EXPECT_GE(pool.adaptor.allocated_bytes(), nearly_all);
    static_cast<void>(pool.trim());  // what is dead does not count
    EXPECT_LE(room.populated_bytes(), pool.adaptor.allocated_bytes() / 10 * 11);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         FullPool,
                         testing::Values(random_requests{1, 1U << 20U, 68U << 20U},
                                         random_requests{2, 1U << 20U, 68U << 20U},
                                         random_requests{8, 1U << 20U, 68U << 20U},
                                         random_requests{1, 300U << 10U, 20U << 20U},
                                         random_requests{2, 300U << 10U, 20U << 20U},
                                         random_requests{8, 300U << 10U, 20U << 20U}),
                         [](auto const& each) {
                           return (each.param.least_bytes < blocks(1) / 2 ? "SmallOn" : "LargeOn") +
                                  std::to_string(each.param.streams);
                         });

/** @brief A forked child: there a driver cannot say, and makes nothing. */
TEST(PoolInAForkedChild, NothingIsMadeNorWaitedForPastTheMaximum)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  full_pool pool{driver};
  auto const stream = stream_number(1);
  auto const freed  = pool.take(stream, blocks(4));
  auto const kept   = pool.take(stream, blocks(2));
  pool.free(stream, freed);
  driver->capture = capture_state::unknown;
  static_cast<void>(driver->take_calls());
  EXPECT_THROW(static_cast<void>(pool.take(stream, blocks(6))), rmm::out_of_memory);
  auto const again = pool.take(stream, blocks(4));  // what is free is handed out
  for (auto const& call : driver->take_calls()) {
    EXPECT_EQ(call.name, "capturing");
  }
  EXPECT_EQ(pool.managed.slab_bytes(), blocks(6));
  pool.free(stream, again);
  driver->capture = capture_state::none;
  EXPECT_EQ(pool.take(stream, blocks(6)).bytes, blocks(6));
  EXPECT_EQ(driver->take_calls("discard").size(), 1U);
  pool.free(stream, kept);
}

/** @brief A pool, and a graph that stream 1 captures. */
class GraphMemory : public testing::Test {
 protected:
  void begin()
  {
    driver->graph   = std::make_shared<captured_graph>(++last_number_);
    driver->capture = capture_state::capturing;
  }
  void end() { driver->capture = capture_state::none; }

  [[nodiscard]] std::size_t live_bytes() const { return pool.adaptor.allocated_bytes(); }

  std::shared_ptr<tests::recording_driver> driver = std::make_shared<tests::recording_driver>();
  full_pool pool{driver};
  cuda::stream_ref captured = stream_number(1);
  cuda::stream_ref other    = stream_number(2);

 private:
  std::uint64_t last_number_{0};
};

TEST_F(GraphMemory, IsIdleAndThereWhenItIsHandedOut)
{
  stream_handle own{};
  ASSERT_TRUE(driver->own_stream(own_stream_use::frees, own).ok());
  begin();
  static_cast<void>(driver->take_calls());
  auto const memory = pool.take(captured, blocks(2));
  auto const calls  = driver->take_calls();
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.back().name, "synchronize");
  for (auto const& call : calls) {
    EXPECT_TRUE(call.name == "capturing" || call.name == "graph_of" || call.stream == own ||
                call.stream == nullptr)
      << call;
  }
  end();
  pool.free(other, memory);
}

TEST_F(GraphMemory, StaysInUseUntilItsGraphEndsWhoeverFreesIt)
{
  begin();
  auto const inside  = pool.take(captured, blocks(1));
  auto const outside = pool.take(captured, blocks(1));
  pool.free(captured, inside);
  end();
  pool.free(other, outside);
  stream_handle own{};
  ASSERT_TRUE(driver->own_stream(own_stream_use::frees, own).ok());
  ASSERT_FALSE(driver->orders.empty());  // what is freed is not waited for by that stream
  EXPECT_EQ(driver->orders.back(), std::pair(own, stream_handle{other.get()}));
  EXPECT_EQ(live_bytes(), blocks(2));
  auto const next = pool.take(captured, blocks(1));
  EXPECT_NE(next.address, inside.address);
  EXPECT_NE(next.address, outside.address);
  driver->graph->end();
  EXPECT_EQ(live_bytes(), blocks(3));
  pool.free(captured, next);
  EXPECT_EQ(live_bytes(), 0U);
}

TEST_F(GraphMemory, IsHandedOutAgainInItsCaptureAndStreamAlone)
{
  begin();
  auto const memory = pool.take(captured, blocks(1));
  pool.free(captured, memory);
  auto const beside = pool.take(other, blocks(1));  // which takes part in the capture
  EXPECT_NE(beside.address, memory.address);
  EXPECT_NE(pool.take(captured, 2 * blocks(1)).address, memory.address);
  EXPECT_EQ(pool.take(captured, blocks(1)).address, memory.address);
  pool.free(captured, memory);
  begin();
  EXPECT_NE(pool.take(captured, blocks(1)).address, memory.address);
}

TEST_F(GraphMemory, FromBeforeWaitsForTheGraphAndForItsStream)
{
  auto const memory = pool.take(captured, blocks(2));
  begin();
  pool.free(captured, memory);
  end();
  pool.free(captured, pool.take(captured, blocks(1)));
  EXPECT_EQ(live_bytes(), blocks(2));  // the graph may read it
  driver->graph->end();
  auto const others = pool.take(other, blocks(2));
  EXPECT_NE(others.address, memory.address);  // work before the capture may write it
  EXPECT_EQ(pool.take(captured, blocks(2)).address, memory.address);
  pool.free(captured, memory);
  pool.free(other, others);
  EXPECT_EQ(live_bytes(), 0U);
}

TEST_F(GraphMemory, WhoseGraphHasEndedIsFreedAsAnyOther)
{
  begin();
  auto const memory = pool.take(captured, blocks(1));
  end();
  driver->graph->end();
  pool.free(other, memory);
  EXPECT_EQ(live_bytes(), 0U);
}

TEST_F(GraphMemory, ThatTwoGraphsUseWaitsForBoth)
{
  begin();
  auto const memory = pool.take(captured, blocks(1));
  auto const first  = driver->graph;
  begin();
  pool.free(captured, memory);
  end();
  first->end();
  pool.free(captured, pool.take(captured, blocks(1)));
  EXPECT_EQ(live_bytes(), blocks(1));
  driver->graph->end();
  pool.free(captured, pool.take(captured, blocks(1)));
  EXPECT_EQ(live_bytes(), 0U);
}

TEST_F(GraphMemory, IsRefusedASecondFree)
{
  begin();
  auto const memory = pool.take(captured, blocks(1));
  auto* const ptr   = reinterpret_cast<void*>(memory.address);
  EXPECT_FALSE(pool.adaptor.try_deallocate(captured, ptr, blocks(2), 256));
  EXPECT_TRUE(pool.adaptor.try_deallocate(captured, ptr, blocks(1), 256));
  EXPECT_FALSE(pool.adaptor.try_deallocate(captured, ptr, blocks(1), 256));
  end();
  EXPECT_FALSE(pool.adaptor.try_deallocate(other, ptr, blocks(1), 256));
  EXPECT_EQ(pool.adaptor.refused_frees(), 3U);
}

TEST_F(GraphMemory, ThatCannotBeWaitedForIsNotHandedOutAndNothingIsLost)
{
  begin();
  driver->answers["synchronize"] = {status_code::driver_error, 1, "cuStreamSynchronize"};
  EXPECT_THROW(static_cast<void>(pool.take(captured, blocks(1))), rmm::bad_alloc);
  EXPECT_EQ(live_bytes(), 0U);
}

class CapturingPool : public testing::TestWithParam<capture_state> {};

/** @brief The default stream beside a capture that it waits for, and a capture that has failed. */
TEST_P(CapturingPool, HandsOutNothingThatAnUnknownGraphWouldUse)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  full_pool pool{driver};
  auto const stream = stream_number(1);
  auto const freed  = pool.take(stream, blocks(2));
  driver->capture   = GetParam();
  static_cast<void>(driver->take_calls());
  try {
    static_cast<void>(pool.take(stream, blocks(2)));
    FAIL() << "a graph would use it after the pool handed it to others";
  } catch (std::runtime_error const& error) {
    EXPECT_TRUE(std::string_view{error.what()}.starts_with(
      "4.0 MiB asked during the capture of a CUDA graph, "))
      << error.what();
  }
  pool.free(stream, freed);
  for (auto const& call : driver->take_calls()) {
    EXPECT_TRUE(call.name == "capturing" || call.name == "graph_of") << call;
  }
  driver->capture   = capture_state::none;
  auto const others = pool.take(stream_number(2), blocks(2));
  EXPECT_NE(others.address, freed.address);  // that stream has not passed yet
  EXPECT_EQ(pool.take(stream, blocks(2)).address, freed.address);
}

TEST_P(CapturingPool, NothingIsGivenBackNorDiscarded)
{
  auto const driver = std::make_shared<tests::recording_driver>();
  full_pool pool{driver};
  auto const stream = stream_number(1);
  pool.free(stream, pool.take(stream, blocks(4)));
  driver->capture = GetParam();
  static_cast<void>(driver->take_calls());
  EXPECT_EQ(pool.trim().reason, "a stream captures, or may, or this is a child of a fork");
  for (auto const& call : driver->take_calls()) {
    EXPECT_EQ(call.name, "capturing");
  }
  driver->capture = capture_state::none;
  EXPECT_EQ(pool.trim().given_back_bytes, blocks(4));
}

INSTANTIATE_TEST_SUITE_P(Where,
                         CapturingPool,
                         testing::Values(capture_state::capturing, capture_state::implied),
                         [](auto const& each) {
                           return each.param == capture_state::capturing ? "InItsStream"
                                                                         : "InTheLegacyStream";
                         });

}  // namespace
}  // namespace rmm_uvm::mr
