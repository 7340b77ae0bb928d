// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Eight threads allocate and free through our chain, with RMM's pool in it and without; also run by
// the thread sanitizer.
#include "../support/forked.hpp"
#include "../support/simulated_chain.hpp"
#include "../support/threads.hpp"
#include "../support/touching.hpp"

#include <rmm/error.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace rmm_uvm::mr {
namespace {

using tests::blocks;
using tests::default_stream;
using tests::simulated_chain;
using tests::thread_count;

constexpr std::size_t alignment = 256;

/** @brief Whether RMM's pool stands between our adaptor and managed memory. */
class ConcurrentPool : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static uvm_resource_adaptor adaptor_over(simulated_chain& chain)
  {
    if (!GetParam()) { return chain.adaptor; }
    return uvm_resource_adaptor{rmm::mr::pool_memory_resource{chain.managed, blocks(32)},
                                chain.residency,
                                prefetch_mode::automatic};
  }

  simulated_chain chain;
  uvm_resource_adaptor adaptor{adaptor_over(chain)};
};

TEST_P(ConcurrentPool, OneOfTheFreesOfAllThreadsWins)
{
  std::vector<void*> pointers(500);
  for (auto& ptr : pointers) {
    ptr = adaptor.allocate(default_stream, 1'000, alignment);
  }
  std::atomic<std::size_t> freed{0};
  tests::on_threads(thread_count, [&](std::size_t) {
    for (auto* const ptr : pointers) {
      freed += adaptor.try_deallocate(default_stream, ptr, 1'000) ? 1 : 0;
    }
  });
  EXPECT_EQ(freed, pointers.size());
  EXPECT_EQ(adaptor.refused_frees(), (thread_count - 1) * pointers.size());
  EXPECT_EQ(chain.managed.refused_frees(), 0U);
  EXPECT_EQ(adaptor.allocated_bytes(), 0U);
}

TEST_P(ConcurrentPool, ThreadsThatAllocateAndFreeLeaveNothing)
{
  auto const levels = adaptor.levels();
  auto const before = chain.managed.slab_bytes();
  std::atomic<bool> over{false};
  tests::on_threads(thread_count, [&](std::size_t index) {
    for (std::size_t round = 0; round < 50; ++round) {
      auto const bytes = 1 + index * 100'000 + round;
      auto* const ptr  = adaptor.allocate(default_stream, bytes, alignment);
      // As a monitor reads them beside.
      if (levels->levels().footprint_bytes < bytes) { over = true; }
      if (adaptor.allocation_at(reinterpret_cast<std::uintptr_t>(ptr))->bytes != bytes) {
        over = true;
      }
      adaptor.deallocate(default_stream, ptr, bytes, alignment);
    }
  });
  EXPECT_FALSE(over);
  EXPECT_EQ(adaptor.allocated_bytes(), 0U);
  EXPECT_EQ(adaptor.refused_frees(), 0U);
  EXPECT_GE(adaptor.peak_bytes(), 700'001U);
  EXPECT_EQ(chain.managed.slab_bytes(), before);
}

TEST_P(ConcurrentPool, ChildOfAForkBesideCallsOfThreadsAllocatesAndFrees)
{
  std::atomic<bool> ending{false};
  std::atomic<bool> well{true};
  tests::on_threads(4, [&](std::size_t index) {
    while (index != 0 && !ending) {
      auto* const ptr = adaptor.allocate(default_stream, 300'000, alignment);
      memory_range const range{reinterpret_cast<std::uintptr_t>(ptr), 300'000};
      EXPECT_TRUE(chain.residency->holds(range.address));  // as every hint asks first
      chain.residency->bring(range, nullptr);
      adaptor.deallocate(default_stream, ptr, 300'000, alignment);
    }
    for (int round = 0; index == 0 && round < 30; ++round) {
      auto* const ptr = adaptor.allocate(default_stream, 1'000, alignment);
      bool const all  = tests::in_child([&] {
        adaptor.deallocate(default_stream, ptr, 1'000, alignment);
        auto* const own = adaptor.allocate(default_stream, 500'000, alignment);
        chain.residency->bring({reinterpret_cast<std::uintptr_t>(own), 500'000}, nullptr);
        adaptor.deallocate(default_stream, own, 500'000, alignment);
        return true;
      });
      if (!all) { well = false; }
      adaptor.deallocate(default_stream, ptr, 1'000, alignment);
    }
    if (index == 0) { ending = true; }
  });
  EXPECT_TRUE(well);
  EXPECT_EQ(adaptor.allocated_bytes(), 0U);
}

/** @brief Counts what it is told of. */
class counting_observer final : public memory_observer {
 public:
  std::atomic<std::size_t> allocations{0};
  std::atomic<std::size_t> frees{0};

  void allocated(int /*device_id*/,
                 memory_range /*range*/,
                 stream_handle /*stream*/) noexcept override
  {
    ++allocations;
  }
  void freed(int /*device_id*/, memory_range /*range*/, stream_handle /*stream*/) noexcept override
  {
    ++frees;
  }
  void touched(int /*device_id*/,
               memory_range /*range*/,
               bool /*write*/,
               bool /*by_cpu*/) noexcept override
  {
  }
};

TEST_P(ConcurrentPool, SwappingObserversWhileOthersAllocateLosesNoCall)
{
  std::array<std::shared_ptr<counting_observer>, 2> const observers{
    std::make_shared<counting_observer>(), std::make_shared<counting_observer>()};
  adaptor.observe(observers[0]);
  constexpr std::size_t rounds = 100;
  tests::on_threads(thread_count, [&](std::size_t index) {
    for (std::size_t round = 0; round < rounds; ++round) {
      if (index == 0) {
        adaptor.observe(observers[round % 2]);
      } else {
        auto* const ptr = adaptor.allocate(default_stream, 4096, alignment);
        adaptor.deallocate(default_stream, ptr, 4096, alignment);
      }
    }
  });
  auto const calls = (thread_count - 1) * rounds;
  EXPECT_EQ(observers[0]->allocations + observers[1]->allocations, calls);
  EXPECT_EQ(observers[0]->frees + observers[1]->frees, calls);
}

TEST_P(ConcurrentPool, UnderABudgetWithAThreadThatMovesNoByteIsLost)
{
  simulated_chain real{.backing = true};
  auto kept       = adaptor_over(real);
  auto settings   = residency_settings::of(blocks(6));
  settings.policy = eviction_policy::lru;
  settings.ahead  = true;
  real.residency->start_budget(settings);
  std::atomic<int> lost{0};
  tests::on_threads(thread_count, [&](std::size_t index) {
    for (int round = 0; round < tests::rounds_of(36); ++round) {
      auto const bytes =
        1 + (index + static_cast<std::size_t>(round)) % 3 * va_block_bytes + index * 1'000;
      auto const value = static_cast<unsigned char>(1 + index);
      auto* const ptr =
        static_cast<unsigned char*>(kept.allocate(default_stream, bytes, alignment));
      memory_range const range{reinterpret_cast<std::uintptr_t>(ptr), bytes};
      static_cast<void>(real.device->program().touch(range, true));
      ptr[0] = ptr[bytes - 1] = value;
      if (round % 4 == 0) { static_cast<void>(real.residency->evict(range, nullptr)); }
      tests::touch(*real.residency, range, nullptr);
      static_cast<void>(real.device->program().touch(range, true));
      lost += ptr[0] == value && ptr[bytes - 1] == value ? 0 : 1;
      kept.deallocate(default_stream, ptr, bytes, alignment);
    }
  });
  real.residency->flush();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(kept.allocated_bytes(), 0U);
  EXPECT_EQ(real.residency->budget_statistics().value().failed_calls, 0U);
  EXPECT_GT(real.residency->budget_statistics().value().evicted_bytes, 0U);
}

/** @brief What a thread holds of a pool that others fill, too; all of it has one byte. */
class holder {
 public:
  holder(simulated_chain& chain, uvm_resource_adaptor& full, unsigned char value)
    : chain_{chain}, full_{full}, value_{value}
  {
  }

  void take(std::size_t bytes)
  {
    auto* const ptr = static_cast<unsigned char*>(full_.allocate(default_stream, bytes, alignment));
    memory_range const range{reinterpret_cast<std::uintptr_t>(ptr), bytes};
    static_cast<void>(chain_.device->program().touch(range, true));
    std::memset(ptr, value_, bytes);
    live_.push_back(range);
  }
  void free(std::size_t index)
  {
    auto const range = live_[index];
    auto* const ptr  = reinterpret_cast<unsigned char*>(range.address);
    if (ptr[0] != value_ || ptr[range.bytes - 1] != value_) { ++lost_; }
    full_.deallocate(default_stream, ptr, range.bytes, alignment);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  /** @return how often the pool refused */
  [[nodiscard]] int fill(std::size_t index)
  {
    int refused = 0;
    for (std::size_t round = 0; round < 60; ++round) {
      try {
        take(1 + (index + round) % 5 * 900'000 + index * 1'000);
      } catch (rmm::out_of_memory const&) {
        ++refused;
      }
      if (live_.size() >= 6) { free(round % live_.size()); }
    }
    return refused;
  }
  /** @return what had other bytes when it was freed, of all so far */
  [[nodiscard]] std::size_t free_all()
  {
    while (!live_.empty()) {
      free(0);
    }
    return lost_;
  }

 private:
  simulated_chain& chain_;
  uvm_resource_adaptor& full_;
  unsigned char value_;
  std::vector<memory_range> live_;
  std::size_t lost_{0};
};

TEST(PoolThatIsFull, ThreadsThatFillItLoseNoByteToDiscardsAndPassNoMaximum)
{
  simulated_chain real{.backing = true};
  real.residency->room().set_maximum(blocks(20), blocks(22));
  uvm_resource_adaptor full{rmm::mr::pool_memory_resource{real.managed, blocks(8), blocks(128)},
                            real.residency,
                            prefetch_mode::automatic};
  std::vector<holder> holders;  // of all until all have filled it
  holders.reserve(thread_count);
  for (std::size_t index = 0; index < thread_count; ++index) {
    holders.emplace_back(real, full, static_cast<unsigned char>(1 + index));
  }
  std::atomic<int> refused{0};
  tests::on_threads(thread_count,
                    [&](std::size_t index) { refused += holders[index].fill(index); });
  for (auto& each : holders) {
    EXPECT_EQ(each.free_all(), 0U);
  }
  EXPECT_GT(refused, 0);
  // A request that the slabs have room for is counted after it was served.
  EXPECT_LE(full.peak_bytes(), blocks(20) + thread_count * 4'000'000);
  EXPECT_EQ(full.allocated_bytes(), 0U);
  // All of it is to be had again in one piece, which no slab has.
  auto* const whole = full.allocate(default_stream, blocks(20), alignment);
  EXPECT_GT(real.managed.slab_bytes(), blocks(20));
  full.deallocate(default_stream, whole, blocks(20), alignment);
}

INSTANTIATE_TEST_SUITE_P(Chains, ConcurrentPool, testing::Bool(), [](auto const& each) {
  return each.param ? "WithThePoolOfRmm" : "WithoutAPool";
});

}  // namespace
}  // namespace rmm_uvm::mr
