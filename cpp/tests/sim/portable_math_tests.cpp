// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/portable_math.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rmm_uvm::sim {
namespace {

TEST(PortableMath, LogarithmIsThatOfTheLibraryTo14Digits)
{
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(natural_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(natural_log(1), 0.0);
}

TEST(PortableMath, ExponentialIsThatOfTheLibraryTo13Digits)
{
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(exponential(x) / std::exp(x), 1.0, 2e-13) << x;
  }
  EXPECT_EQ(exponential(0), 1.0);
}

TEST(PortableMath, ExponentialPastTheNumbersThatThereAreIsZeroOrInfinite)
{
  EXPECT_EQ(exponential(-1e9), 0.0);
  EXPECT_EQ(exponential(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_TRUE(std::isinf(exponential(1e9)));
  EXPECT_FALSE(std::isinf(exponential(709)));
}

// To the last bit, on every machine: what a library's functions do not promise, and what a compiler
// breaks that multiplies and adds in one step.
TEST(PortableMath, ResultsAreTheSameBitsEverywhere)
{
  std::uint64_t bits = 0;
  for (int step = 1; step <= 1000; ++step) {
    auto const x = step / 64.0;
    bits         = bits * 31 + std::bit_cast<std::uint64_t>(natural_log(x));
    bits         = bits * 31 + std::bit_cast<std::uint64_t>(exponential(-x));
  }
  EXPECT_EQ(bits, 0xA237'E2CB'8EF5'ACDDU);
}

}  // namespace
}  // namespace rmm_uvm::sim
