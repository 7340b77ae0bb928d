// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "../support/fake_cupti.hpp"

#include <rmm_uvm/cuda/cupti_records.hpp>

#include <gtest/gtest.h>

#include <array>

namespace rmm_uvm::cuda {
namespace {

using tests::moved;

constexpr auto to_device          = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
constexpr auto to_host            = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH;
constexpr std::uint64_t somewhere = std::uint64_t{1} << 40U;

[[nodiscard]] cause_totals counted(CUpti_ActivityUnifiedMemoryCounter3 const& record,
                                   std::vector<std::uint32_t> const& devices)
{
  migration_tally tally;
  count_record(record, devices, tally);
  return tally.totals();
}

[[nodiscard]] CUpti_ActivityUnifiedMemoryCounter3 other(CUpti_ActivityUnifiedMemoryCounterKind kind,
                                                        std::uint32_t source,
                                                        std::uint32_t destination,
                                                        std::uint64_t value)
{
  auto record  = moved(kind, somewhere, value, 0);
  record.srcId = source;
  record.dstId = destination;
  return record;
}

TEST(CuptiRecords, MovesAreEnteredByDirectionCauseAndBlock)
{
  migration_tally tally;
  count_record(moved(to_device, somewhere, 8192, 1), {}, tally);
  count_record(moved(to_host, somewhere, 4096, 4), {}, tally);
  EXPECT_EQ(tally.totals().host_to_device_bytes[1], 8192U);
  EXPECT_EQ(tally.totals().device_to_host_bytes[4], 4096U);
  ASSERT_EQ(tally.busiest(2).size(), 1U);
  EXPECT_EQ(tally.busiest(2)[0].address, somewhere);
}

TEST(CuptiRecords, CauseThatIsNotDefinedIsUnknown)
{
  EXPECT_EQ(counted(moved(to_device, somewhere, 4096, 77), {}).host_to_device_bytes[0], 4096U);
  EXPECT_EQ(counted(moved(to_host, somewhere, 4096, 256 + 4), {}).device_to_host_bytes[0], 4096U);
}

TEST(CuptiRecords, MovesOfOtherDevicesAreLeftOut)
{
  EXPECT_EQ(counted(moved(to_device, somewhere, 4096, 1, 1), {1, 3}).host_to_device_bytes[1],
            4096U);
  EXPECT_EQ(counted(moved(to_device, somewhere, 4096, 1, 0), {1, 3}).host_to_device_bytes[1], 0U);
  EXPECT_EQ(counted(moved(to_host, somewhere, 4096, 1, 2), {1, 3}).device_to_host_bytes[1], 0U);
}

TEST(CuptiRecords, MoveBetweenDevicesIsOfTheDestination)
{
  auto const record =
    other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD, 0, 1, 4096);
  EXPECT_EQ(counted(record, {1}).device_to_device_bytes, 4096U);
  EXPECT_EQ(counted(record, {0}).device_to_device_bytes, 0U);
}

TEST(CuptiRecords, CpuFaultIsOneWhateverItsValue)
{
  auto const record =
    other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT, 9, 9, 0x7FFF'1234'5678);
  EXPECT_EQ(counted(record, {0}).cpu_faults, 1U);
}

TEST(CuptiRecords, GpuFaultsAreGroupsOfTheSource)
{
  auto const record = other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT, 1, 9, 5);
  EXPECT_EQ(counted(record, {1}).gpu_fault_groups, 5U);
  EXPECT_EQ(counted(record, {0}).gpu_fault_groups, 0U);
}

TEST(CuptiRecords, ThrashingIsOfTheProcessorsInTheMask)
{
  auto record = other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 0, 0, 65536);
  EXPECT_EQ(counted(record, {2}).thrashing_bytes, 65536U);  // nobody is named
  record.processors[1] = 1U << 2U;                          // device 66
  EXPECT_EQ(counted(record, {66}).thrashing_bytes, 65536U);
  EXPECT_EQ(counted(record, {2}).thrashing_bytes, 0U);
  EXPECT_EQ(counted(record, {5000}).thrashing_bytes, 0U);
}

TEST(CuptiRecords, ThrottlingIsTheTimeAndThatOfTheCpuIsEverybodys)
{
  auto record  = other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING, 1, 9, 123);
  record.start = 1000;
  record.end   = 1500;
  EXPECT_EQ(counted(record, {1}).throttling_ns, 500U);
  EXPECT_EQ(counted(record, {0}).throttling_ns, 0U);
  record.srcId = CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID;
  EXPECT_EQ(counted(record, {0}).throttling_ns, 500U);
  record.end = 0;  // not known
  EXPECT_EQ(counted(record, {0}).throttling_ns, 0U);
}

TEST(CuptiRecords, RemoteMapIsOfBothEnds)
{
  auto const record = other(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP, 1, 2, 4096);
  EXPECT_EQ(counted(record, {1}).remote_map_bytes, 4096U);
  EXPECT_EQ(counted(record, {2}).remote_map_bytes, 4096U);
  EXPECT_EQ(counted(record, {0}).remote_map_bytes, 0U);
}

TEST(CuptiRecords, UnknownKindIsLeftOut)
{
  auto const record = other(static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(99), 0, 0, 4096);
  auto const totals = counted(record, {});
  EXPECT_EQ(totals.host_to_device_bytes[0] + totals.cpu_faults + totals.remote_map_bytes, 0U);
}

}  // namespace
}  // namespace rmm_uvm::cuda
