// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// Managed memory in several mappings: where it is cut, how many there are, what a refusal leaves.
#include "../support/fake_system.hpp"

#include <rmm_uvm/cuda/mapping_cuts.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

using parts = std::vector<std::pair<std::uintptr_t, std::size_t>>;

constexpr std::uintptr_t base   = 0x7F00'0000'0000;
constexpr std::size_t MiB       = std::size_t{1} << 20U;
constexpr std::size_t one_piece = mapping_cuts::least_bytes;

class MappingCuts : public testing::Test {
 protected:
  /** @return bytes of the mappings that memory was cut into, but for the last one */
  [[nodiscard]] std::size_t length_of(memory_range memory)
  {
    system->kept_apart.clear();
    cuts.cut(memory);
    return system->kept_apart.empty() ? memory.bytes : system->kept_apart.front().second;
  }

  std::shared_ptr<tests::fake_system> system{std::make_shared<tests::fake_system>()};
  mapping_cuts cuts{system};
};

TEST_F(MappingCuts, KeepEverySecondPieceApart)
{
  cuts.cut({base, 5 * one_piece + 2 * MiB});
  EXPECT_EQ(system->kept_apart,
            (parts{{base + one_piece, one_piece},
                   {base + 3 * one_piece, one_piece},
                   {base + 5 * one_piece, 2 * MiB}}));
}

TEST_F(MappingCuts, LeaveWholeWhatIsOnePieceOrBeginsWithinABlock)
{
  cuts.cut({base, one_piece});
  cuts.cut({base + MiB, 4 * one_piece});
  EXPECT_EQ(system->kept_apart, parts{});
}

TEST_F(MappingCuts, TakeAtMostHalfOfTheMappingsThatAreLeft)
{
  auto const half = mapping_cuts::most / 2 * one_piece;
  EXPECT_EQ(length_of({base, half}), one_piece);
  EXPECT_EQ(length_of({base + half, half}), 2 * one_piece);  // a quarter is left for it
  cuts.forget(base);
  cuts.forget(base + half);
  cuts.forget(base + MiB);  // was never cut
  EXPECT_EQ(length_of({base, half}), one_piece);
}

TEST_F(MappingCuts, AreCountedForAllDevicesOfTheProcess)
{
  auto const half = mapping_cuts::most / 2 * one_piece;
  {
    mapping_cuts another{system};
    another.cut({base + half, half});
    EXPECT_EQ(length_of({base, half}), 2 * one_piece);
    cuts.forget(base);
  }
  EXPECT_EQ(length_of({base, half}), one_piece);
}

TEST_F(MappingCuts, EndWhereTheSystemRefuses)
{
  system->errors[system->calls + 2] = ENOMEM;
  cuts.cut({base, 8 * one_piece});
  EXPECT_EQ(system->kept_apart, (parts{{base + one_piece, one_piece}}));
}

/** @return mappings of this process that overlap a range */
[[nodiscard]] std::size_t mappings_of(std::uintptr_t begin, std::size_t bytes)
{
  std::ifstream maps{"/proc/self/maps"};
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long end   = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &end) != 2) { continue; }  // NOLINT
    found += first < begin + bytes && end > begin ? 1 : 0;
  }
  return found;
}

TEST(MappingCutsOfLinux, MakeMappingsOfTheirOwn)
{
  auto const bytes    = 8 * one_piece;
  void* const pointer = ::mmap(nullptr,
                               bytes + va_block_bytes,
                               PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                               -1,
                               0);
  ASSERT_NE(pointer, MAP_FAILED);  // NOLINT
  auto const begin = va_block_ceil(reinterpret_cast<std::uintptr_t>(pointer));
  mapping_cuts cuts{linux_system_calls()};
  EXPECT_EQ(mappings_of(begin, bytes), 1U);
  cuts.cut({begin, bytes});
  EXPECT_EQ(mappings_of(begin, bytes), 8U);
  *reinterpret_cast<char volatile*>(begin + one_piece) = 1;  // used as before
  EXPECT_EQ(::munmap(pointer, bytes + va_block_bytes), 0);
  EXPECT_EQ(mappings_of(begin, bytes), 0U);
}

}  // namespace
}  // namespace rmm_uvm::cuda
