// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Memory that is handed out on a busy stream, and first written from elsewhere: no byte is lost.
#include "../support/blocks.hpp"
#include "../support/first_fit.hpp"
#include "../support/late_driver.hpp"
#include "../support/touching.hpp"
#include "random_allocations.hpp"

#include <rmm_uvm/residency/discards.hpp>
#include <rmm_uvm/residency/managed_residency.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>

namespace rmm_uvm {
namespace {

using tests::blocks;

constexpr std::size_t slab_blocks   = 24;
constexpr std::size_t budget_blocks = 6;
constexpr auto automatic            = prefetch_mode::automatic;

[[nodiscard]] stream_handle stream_number(std::uintptr_t number)
{
  return reinterpret_cast<stream_handle>(0x1000 + number);
}

/** @brief How the memory is kept, and how much of it the device holds. */
struct keeping {
  bool budget{false};
  bool background{false};
  std::size_t device_blocks{3 * slab_blocks};
  eviction_policy policy{eviction_policy::lru};
};

/** @brief A slab with real bytes behind it, on a device whose streams can be busy. */
class late_memory {
 public:
  explicit late_memory(keeping how)
    : device{std::make_shared<sim::simulated_device>(configuration(how.device_blocks))},
      driver{std::make_shared<tests::late_driver>(device)},
      residency{driver, make_epoch_source(*driver)}
  {
    if (how.budget) {
      auto settings       = residency_settings::of(blocks(budget_blocks));
      settings.background = how.background;
      settings.policy     = how.policy;
      residency.start_budget(settings);
    }
    static_cast<void>(driver->allocate_managed(slab.bytes, slab.address));
    residency.on_slab(slab, nullptr, automatic);
  }

  /** @brief Whole blocks of the slab. */
  [[nodiscard]] memory_range at(std::size_t first, std::size_t count) const
  {
    return {va_block_ceil(slab.address) + blocks(first), blocks(count)};
  }
  /** @brief A kernel or the CPU writes a range; both are over at once here. */
  void write(memory_range range, unsigned char value, bool by_cpu)
  {
    static_cast<void>(by_cpu ? device->program().cpu_touch(range, true)
                             : device->program().touch(range, true));
    std::memset(reinterpret_cast<void*>(range.address), value, range.bytes);
  }
  [[nodiscard]] static bool holds(memory_range range, unsigned char value)
  {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(range.address);
    return bytes[0] == value && std::memcmp(bytes, bytes + 1, range.bytes - 1) == 0;
  }

  std::shared_ptr<sim::simulated_device> device;
  std::shared_ptr<tests::late_driver> driver;
  memory_range slab{0, blocks(slab_blocks) - 4096};
  rmm_uvm::managed_residency residency;

 private:
  [[nodiscard]] static sim::simulated_device_config configuration(std::size_t device_blocks)
  {
    sim::simulated_device_config config;
    config.capacity_bytes   = blocks(device_blocks);
    config.backing          = true;
    config.direct_migration = false;
    return config;
  }
};

/** @brief Of whom the first write is: the CPU, or a kernel in another stream. */
class FirstWrite : public testing::TestWithParam<std::tuple<bool /*budget*/, bool /*by the CPU*/>> {
};

/** @brief Has blocks 0 and 1 handed out, written, freed, and sent to the host. */
void recycle(late_memory& memory, stream_handle stream)
{
  auto& residency = memory.residency;
  for (std::size_t first = 0; first < 12; first += 2) {  // past the budget
    static_cast<void>(residency.on_allocate(memory.at(first, 2), stream, automatic));
    memory.write(memory.at(first, 2), 7, false);
  }
  residency.on_free(memory.at(0, 2), stream);
  // Without a budget the kernel driver would evict it.
  static_cast<void>(memory.driver->prefetch(memory.at(0, 2), location::host(), nullptr));
}

TEST_P(FirstWrite, IntoMemoryHandedOutOnABusyStreamIsKept)
{
  auto const [budget, by_cpu] = GetParam();
  late_memory memory{{budget}};
  auto* const stream = stream_number(1);
  recycle(memory, stream);
  memory.driver->keep_busy(stream);
  static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
  memory.write(memory.at(0, 2), 42, by_cpu);
  memory.driver->catch_up();
  EXPECT_TRUE(late_memory::holds(memory.at(0, 2), 42));
}

TEST_P(FirstWrite, IntoMemoryFreedOnABusyStreamIsKept)
{
  auto const [budget, by_cpu] = GetParam();
  late_memory memory{{budget}};
  auto* const stream = stream_number(1);
  recycle(memory, stream);
  static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
  memory.driver->keep_busy(stream);
  memory.residency.on_free(memory.at(0, 2), stream);
  static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
  memory.write(memory.at(0, 2), 42, by_cpu);
  memory.driver->catch_up();
  EXPECT_TRUE(late_memory::holds(memory.at(0, 2), 42));
}

TEST_P(FirstWrite, IntoMemoryHandedOutOnAnIdleStreamIsKeptAndNothingIsCopied)
{
  auto const [budget, by_cpu] = GetParam();
  late_memory memory{{budget}};
  auto* const stream = stream_number(1);
  recycle(memory, stream);
  auto const before = memory.device->view().statistics().host_to_device_bytes;
  static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
  EXPECT_EQ(memory.device->view().statistics().host_to_device_bytes, before);
  memory.write(memory.at(0, 2), 42, by_cpu);
  EXPECT_TRUE(late_memory::holds(memory.at(0, 2), 42));
}

INSTANTIATE_TEST_SUITE_P(Writers, FirstWrite, testing::Combine(testing::Bool(), testing::Bool()));

/** @brief Has a kernel read blocks 0 and 1 in a busy stream, behind which they are freed. */
[[nodiscard]] bool is_read_whole(late_memory& memory, std::function<void()> const& after_the_free)
{
  auto* const stream = stream_number(1);
  recycle(memory, stream);
  static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
  memory.write(memory.at(0, 2), 9, false);
  bool whole = false;
  memory.driver->keep_busy(stream);
  memory.driver->launch(stream, [&] { whole = late_memory::holds(memory.at(0, 2), 9); });
  memory.residency.on_free(memory.at(0, 2), stream);
  after_the_free();
  memory.driver->catch_up();
  return whole;
}

TEST(FreedMemory, IsReadWholeByAKernelThatComesLater)
{
  for (bool const budget : {false, true}) {
    late_memory again{{budget}};
    EXPECT_TRUE(is_read_whole(again, [&] {  // it is handed out again, after it left the device
      static_cast<void>(again.residency.evict(again.at(0, 2), stream_number(2)));
      static_cast<void>(again.residency.on_allocate(again.at(0, 2), stream_number(1), automatic));
    }));
    late_memory room{{budget}};
    EXPECT_TRUE(is_read_whole(room, [&] {  // it is dropped to make room, or may be
      static_cast<void>(room.residency.on_allocate(room.at(16, 6), stream_number(2), automatic));
    }));
  }
}

TEST(FreedMemory, ThatIsDiscardedTooEarlyIsNotReadWholeSoThatTheseTestsCanFail)
{
  late_memory memory{{}};
  EXPECT_FALSE(is_read_whole(memory, [&] {
    auto const range = memory.at(0, 2);
    EXPECT_TRUE(discard_at_once(*memory.driver, {&range, 1}).ok());
  }));
}

TEST(FirstWriteBehindADiscard, IsLostSoThatTheseTestsCanFail)
{
  late_memory memory{{}};
  auto* const stream = stream_number(1);
  recycle(memory, stream);
  memory.driver->keep_busy(stream);
  auto const range = memory.at(0, 2);
  static_cast<void>(memory.driver->discard_and_prefetch({&range, 1}, location::device(0), stream));
  memory.write(range, 42, true);
  memory.driver->catch_up();
  EXPECT_FALSE(late_memory::holds(range, 42));
}

TEST(DeadMemory, ThatIsHandedOutWhileItsStreamIsBusyIsCopiedAndCounted)
{
  for (bool const budget : {false, true}) {
    late_memory memory{{budget}};
    auto* const stream = stream_number(1);
    recycle(memory, stream);
    static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
    memory.driver->keep_busy(stream);
    memory.residency.on_free(memory.at(0, 2), stream);
    static_cast<void>(memory.residency.evict(memory.at(0, 2), stream_number(2)));
    static_cast<void>(memory.residency.on_allocate(memory.at(0, 2), stream, automatic));
    auto const seen = budget ? memory.residency.budget_statistics().value().undiscarded_bytes
                             : memory.residency.statistics().undiscarded_bytes;
    EXPECT_EQ(seen, blocks(2));
    if (budget) {
      EXPECT_EQ(memory.residency.budget_statistics().value().undiscarded_copied_bytes, blocks(2));
    }
  }
}

TEST(DeadMemory, WhoseFreesAreMarkedIsDiscardedThoughItsStreamIsBusyAgain)
{
  late_memory memory{{true}};
  auto* const stream = stream_number(1);
  auto& residency    = memory.residency;
  recycle(memory, stream);
  // As much as lies between two marks of frees.
  static_cast<void>(residency.on_allocate(memory.at(12, 6), stream, automatic));
  residency.on_free(memory.at(12, 6), stream);
  memory.driver->keep_busy(stream);
  auto const copied = memory.device->view().statistics().host_to_device_bytes;
  static_cast<void>(residency.on_allocate(memory.at(0, 2), stream, automatic));
  memory.driver->catch_up();
  EXPECT_EQ(memory.device->view().statistics().host_to_device_bytes, copied);
  EXPECT_EQ(residency.budget_statistics().value().undiscarded_bytes, 0U);
}

/** @brief Allocates and frees in streams that are busy now and then; anybody writes first. */
class out_of_order_program final : public tests::random_allocations {
 public:
  out_of_order_program(late_memory& memory, std::uint64_t seed)
    : random_allocations{seed, 12}, memory_{memory}, pool_{memory.slab}
  {
  }

 private:
  [[nodiscard]] stream_handle any_stream() { return stream_number(any_of(3)); }

  [[nodiscard]] std::optional<std::uintptr_t> take(std::size_t bytes) override
  {
    auto* const stream = any_stream();
    if (any_of(2) == 0) { memory_.driver->keep_busy(stream); }
    auto const address = pool_.take(bytes);
    if (!address) { return address; }
    // What a pool does: the stream waits for all that freed the memory in other streams.
    for (std::uintptr_t other = 0; other < 3; ++other) {
      static_cast<void>(memory_.driver->order(stream, stream_number(other)));
    }
    memory_range const range{*address, bytes};
    static_cast<void>(memory_.residency.on_allocate(range, stream, automatic));
    // The first write is nobody's turn: the CPU's, or a kernel's in an idle stream.
    static_cast<void>(any_of(2) == 0 ? memory_.device->program().cpu_touch(range, true)
                                     : memory_.device->program().touch(range, true));
    return address;
  }
  void give(memory_range range) override
  {
    auto* const stream = any_stream();
    if (any_of(3) == 0) { memory_.driver->keep_busy(stream); }
    memory_.residency.on_free(range, stream);
    pool_.give(range.address, range.bytes);
  }
  [[nodiscard]] bool use(memory_range range, std::uint64_t choice) override
  {
    if (choice == 7) { memory_.driver->catch_up(); }
    if (choice == 8) {
      static_cast<void>(memory_.residency.evict(range, any_stream()));
    } else {
      tests::touch(memory_.residency, range, any_stream());
    }
    return true;
  }

  late_memory& memory_;
  tests::first_fit pool_;
};

class OutOfOrderPrograms : public testing::TestWithParam<keeping> {};

TEST_P(OutOfOrderPrograms, LoseNoByte)
{
  for (std::uint64_t const seed : {1U, 2U, 3U, 4U}) {
    late_memory memory{GetParam()};
    EXPECT_EQ((out_of_order_program{memory, seed}.run(800, [] {})), 0U) << "seed " << seed;
    auto const without = memory.residency.statistics();
    memory.residency.flush();
    if (auto const with = memory.residency.budget_statistics()) {
      EXPECT_GT(with->renewed_bytes, 0U);  // it was put to the test
      EXPECT_GT(with->undiscarded_bytes, 0U);
      EXPECT_EQ(with->failed_calls, 0U);
    } else {
      EXPECT_GT(without.discarded_bytes, 0U);
      EXPECT_GT(without.undiscarded_bytes, 0U);
      EXPECT_EQ(without.failed_calls, 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Keepings,
                         OutOfOrderPrograms,
                         testing::Values(keeping{},
                                         keeping{false, false, slab_blocks / 2},
                                         keeping{true},
                                         keeping{true, true},
                                         keeping{true, false, budget_blocks + 2},
                                         keeping{
                                           true, true, 3 * slab_blocks, eviction_policy::repeat}));

}  // namespace
}  // namespace rmm_uvm
