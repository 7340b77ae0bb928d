// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Copies and handles without a GPU; processes other than this one are forked.
#include "../support/blocks.hpp"

#include <rmm_uvm/sim/simulated_transfers.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::sim {
namespace {

using tests::blocks;

constexpr status failure{status_code::driver_error, 0, "injected"};

[[nodiscard]] std::shared_ptr<simulated_device> device_of(bool backing = true)
{
  simulated_device_config config;
  config.capacity_bytes = blocks(8);
  config.backing        = backing;
  return std::make_shared<simulated_device>(config);
}

[[nodiscard]] unsigned char& byte_at(std::uintptr_t address)
{
  return *reinterpret_cast<unsigned char*>(address);
}

class SimulatedTransfers : public testing::Test {
 protected:
  [[nodiscard]] std::uintptr_t take_device(std::size_t bytes) const
  {
    std::uintptr_t address = 0;
    EXPECT_TRUE(device->program().allocate_device(bytes, address).ok());
    return address;
  }
  [[nodiscard]] std::uintptr_t take_managed(std::size_t bytes) const
  {
    std::uintptr_t address = 0;
    EXPECT_TRUE(device->allocate_managed(bytes, address).ok());
    return address;
  }
  [[nodiscard]] status copy(std::uintptr_t to, std::uintptr_t from, std::size_t bytes)
  {
    std::array const one{transfer{to, from, bytes}};
    return transfers.copy(one);
  }
  /** @brief Lets another process do something. @return whether it answered true */
  [[nodiscard]] static bool elsewhere(std::function<bool()> const& work)
  {
    auto const child = ::fork();
    if (child == 0) { ::_exit(work() ? 0 : 1); }
    int ended = -1;
    EXPECT_EQ(::waitpid(child, &ended, 0), child);
    return ended == 0;
  }

  std::shared_ptr<simulated_device> device = device_of();
  simulated_transfers transfers{device};
};

// Copies

TEST_F(SimulatedTransfers, CopyBringsTheBytes)
{
  auto const from = take_device(4096);
  auto const to   = take_managed(4096);
  std::memset(&byte_at(from), 7, 4096);
  ASSERT_TRUE(copy(to + 1, from, 100).ok());
  EXPECT_EQ(byte_at(to), 0);
  EXPECT_EQ(byte_at(to + 1), 7);
  EXPECT_EQ(byte_at(to + 100), 7);
  EXPECT_EQ(byte_at(to + 101), 0);
}

TEST_F(SimulatedTransfers, CopyPastAnAllocationIsInvalidAndChangesNothing)
{
  auto const first  = take_device(4096);
  auto const second = take_device(4096);
  byte_at(first)    = 7;
  EXPECT_EQ(copy(second, first, 4097).code, status_code::invalid_value);
  EXPECT_EQ(copy(second + 1, first, 4096).code, status_code::invalid_value);
  EXPECT_EQ(copy(second, 4096, 1).code, status_code::invalid_value);
  EXPECT_EQ(copy(second, first, ~std::size_t{0}).code, status_code::invalid_value);
  EXPECT_EQ(byte_at(second), 0);
  EXPECT_TRUE(copy(second, first, 4096).ok());
  EXPECT_EQ(byte_at(second), 7);
}

TEST_F(SimulatedTransfers, StagingIsTakenOnceAndOfSomeSizeAndGivenBack)
{
  device_memory before{};
  device_memory after{};
  ASSERT_TRUE(device->memory(before).ok());
  {
    simulated_transfers staged{device};
    EXPECT_EQ(staged.take_staging(511).code, status_code::invalid_value);
    EXPECT_EQ(staged.take_staging(blocks(100)).code, status_code::out_of_memory);
    ASSERT_TRUE(staged.take_staging(blocks(2)).ok());
    EXPECT_EQ(staged.take_staging(blocks(2)).code, status_code::invalid_value);
    ASSERT_TRUE(device->memory(after).ok());
    EXPECT_EQ(before.free_bytes - after.free_bytes, blocks(2));
  }
  ASSERT_TRUE(device->memory(after).ok());
  EXPECT_EQ(before.free_bytes, after.free_bytes);
  simulated_transfers bare{device_of(false)};
  EXPECT_EQ(bare.take_staging(512).code, status_code::not_supported);
}

TEST_F(SimulatedTransfers, CopyOfNothingNeedsNoMemory) { EXPECT_TRUE(copy(0, 0, 0).ok()); }

TEST_F(SimulatedTransfers, CopyBringsManagedPagesToTheDevice)
{
  auto const managed = take_managed(blocks(2));
  auto const shared  = take_device(blocks(2));
  ASSERT_TRUE(device->program().cpu_touch({managed, blocks(2)}, true).ok());
  ASSERT_EQ(device->view().resident_bytes({managed, blocks(2)}), 0U);
  ASSERT_TRUE(copy(shared, managed, blocks(1)).ok());
  EXPECT_EQ(device->view().resident_bytes({managed, blocks(2)}), blocks(1));
}

TEST_F(SimulatedTransfers, CopyWithoutBackingIsNotSupported)
{
  simulated_transfers bare{device_of(false)};
  std::array const one{transfer{4096, 8192, 1}};
  EXPECT_EQ(bare.copy(one).code, status_code::not_supported);
}

TEST_F(SimulatedTransfers, CapturedStreamIsNotWaitedFor)
{
  EXPECT_TRUE(transfers.wait_for(nullptr).ok());
  device->answers().set_capture_state(nullptr, capture_state::capturing);
  EXPECT_EQ(transfers.wait_for(nullptr).code, status_code::not_supported);
}

// What an address belongs to

TEST_F(SimulatedTransfers, MemoryIsToldApart)
{
  auto const managed = take_managed(5000);
  auto const shared  = take_device(5000);
  std::optional<memory_kind> found;
  ASSERT_TRUE(transfers.find_memory(managed + 4999, found).ok());
  EXPECT_TRUE(found->managed);
  EXPECT_FALSE(found->ipc_capable);
  EXPECT_EQ(found->base, managed);
  EXPECT_EQ(found->bytes, 5000U);
  ASSERT_TRUE(transfers.find_memory(shared + 1, found).ok());
  EXPECT_FALSE(found->managed);
  EXPECT_TRUE(found->ipc_capable);
  EXPECT_EQ(found->base, shared);
  EXPECT_EQ(found->bytes, 5120U);  // as cudaMalloc rounds
  ASSERT_TRUE(transfers.find_memory(managed + 5000, found).ok());
  EXPECT_FALSE(found);
  ASSERT_TRUE(device->program().free_device(shared).ok());
  ASSERT_TRUE(transfers.find_memory(shared, found).ok());
  EXPECT_FALSE(found);
}

// IPC

TEST_F(SimulatedTransfers, MemoryIsOpenedByAnotherProcess)
{
  auto const shared = take_device(5000);
  byte_at(shared)   = 7;
  ipc_handle handle{};
  ASSERT_TRUE(transfers.ipc_memory_handle(shared, handle).ok());
  EXPECT_TRUE(elsewhere([&] {
    simulated_transfers others{device_of()};
    std::uintptr_t first  = 0;
    std::uintptr_t second = 0;
    std::optional<memory_kind> found;
    if (!others.open_ipc_memory(handle, first).ok() || byte_at(first) != 7) { return false; }
    if (!others.open_ipc_memory(handle, second).ok() || first != second) { return false; }
    if (!others.find_memory(first + 1, found).ok() || found->bytes != 5120) { return false; }
    if (found->managed || found->ipc_capable) { return false; }
    std::array const one{transfer{first + 100, first, 1}};
    if (!others.copy(one).ok()) { return false; }
    return others.close_ipc_memory(first).ok() && others.close_ipc_memory(first).ok() &&
           others.close_ipc_memory(first).code == status_code::invalid_value;
  }));
  EXPECT_EQ(byte_at(shared + 100), 7);
}

TEST_F(SimulatedTransfers, MemoryThatWasFreedIsNotOpened)
{
  auto const shared = take_device(5000);
  ipc_handle handle{};
  ASSERT_TRUE(transfers.ipc_memory_handle(shared, handle).ok());
  ASSERT_TRUE(device->program().free_device(shared).ok());
  static_cast<void>(take_device(5000));  // gets its descriptor's number
  EXPECT_TRUE(elsewhere([&] {
    simulated_transfers others{device_of()};
    std::uintptr_t address = 0;
    return others.open_ipc_memory(handle, address).code == status_code::driver_error;
  }));
}

TEST_F(SimulatedTransfers, OnlyTheFirstByteOfCudaMallocMemoryHasAHandle)
{
  ipc_handle handle{};
  EXPECT_EQ(transfers.ipc_memory_handle(take_managed(4096), handle).code,
            status_code::invalid_value);
  EXPECT_EQ(transfers.ipc_memory_handle(take_device(4096) + 1, handle).code,
            status_code::invalid_value);
  simulated_transfers bare{device_of(false)};
  EXPECT_EQ(bare.ipc_memory_handle(4096, handle).code, status_code::not_supported);
}

TEST_F(SimulatedTransfers, OwnAndGarbledHandlesAreInvalid)
{
  ipc_handle handle{};
  std::uintptr_t address = 0;
  std::shared_ptr<ipc_event> made;
  std::shared_ptr<ipc_event> opened;
  ASSERT_TRUE(transfers.ipc_memory_handle(take_device(4096), handle).ok());
  EXPECT_EQ(transfers.open_ipc_memory(handle, address).code, status_code::invalid_value);
  EXPECT_EQ(transfers.open_ipc_memory({}, address).code, status_code::invalid_value);
  ASSERT_TRUE(transfers.make_ipc_event(made).ok());
  EXPECT_EQ(transfers.open_ipc_event(made->handle(), opened).code, status_code::invalid_value);
  EXPECT_EQ(transfers.open_ipc_event(handle, opened).code, status_code::invalid_value);
  EXPECT_EQ(transfers.open_ipc_memory(made->handle(), address).code, status_code::invalid_value);
}

TEST_F(SimulatedTransfers, EventsHaveHandlesOfTheirOwnAndAreOpenedElsewhere)
{
  std::shared_ptr<ipc_event> first;
  std::shared_ptr<ipc_event> second;
  ASSERT_TRUE(transfers.make_ipc_event(first).ok());
  ASSERT_TRUE(transfers.make_ipc_event(second).ok());
  EXPECT_NE(first->handle(), second->handle());
  EXPECT_TRUE(first->record(nullptr).ok());
  EXPECT_TRUE(elsewhere([&] {
    simulated_transfers others{device_of()};
    std::shared_ptr<ipc_event> opened;
    return others.open_ipc_event(first->handle(), opened).ok() && opened->make_wait(nullptr).ok();
  }));
}

// Failures

TEST_F(SimulatedTransfers, EveryCallFailsWhenPlanned)
{
  std::optional<memory_kind> found;
  std::shared_ptr<transfer_mark> mark;
  std::shared_ptr<ipc_event> event;
  ipc_handle handle{};
  std::uintptr_t address = 0;
  bool reached           = false;
  ASSERT_TRUE(transfers.mark(mark).ok());
  ASSERT_TRUE(transfers.make_ipc_event(event).ok());
  std::vector<std::pair<char const*, std::function<status()>>> const calls{
    {"find_memory", [&] { return transfers.find_memory(4096, found); }},
    {"wait_for", [&] { return transfers.wait_for(nullptr); }},
    {"copy", [&] { return copy(0, 0, 0); }},
    {"take_staging", [&] { return transfers.take_staging(512); }},
    {"mark", [&] { return transfers.mark(mark); }},
    {"done", [&] { return mark->done(reached); }},
    {"wait", [&] { return mark->wait(); }},
    {"make_wait", [&] { return mark->make_wait(nullptr); }},
    {"ipc_memory_handle", [&] { return transfers.ipc_memory_handle(4096, handle); }},
    {"open_ipc_memory", [&] { return transfers.open_ipc_memory(handle, address); }},
    {"close_ipc_memory", [&] { return transfers.close_ipc_memory(4096); }},
    {"make_ipc_event", [&] { return transfers.make_ipc_event(event); }},
    {"open_ipc_event", [&] { return transfers.open_ipc_event(handle, event); }},
    {"record", [&] { return event->record(nullptr); }},
    {"make_wait", [&] { return event->make_wait(nullptr); }},
  };
  for (auto const& [name, call] : calls) {
    device->answers().plan(name, failure, 0);
    EXPECT_STREQ(call().call, "injected") << name;
    EXPECT_STRNE(call().call, "injected") << name;
  }
  EXPECT_TRUE(mark->done(reached).ok());
  EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace rmm_uvm::sim
