// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

namespace rmm_uvm::sim {

// The functions of a C library may differ in their last digit from those of another, and with them
// what a model says. These are made of operations that IEEE 754 defines to the last bit, given that
// the compiler does not contract them (-ffp-contract=off); they are good to some 15 digits.

/** @brief The natural logarithm. @param x > 0, normal and finite */
[[nodiscard]] inline double natural_log(double x) noexcept
{
  constexpr double ln2       = std::numbers::ln2;
  constexpr double root_half = 0.707'106'781'186'547'524'4;
  int exponent               = 0;
  auto mantissa              = std::frexp(x, &exponent);  // exact, in [1/2, 1)
  if (mantissa < root_half) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 atanh((m - 1) / (m + 1)), whose argument is below 0.172 here.
  auto const t       = (mantissa - 1) / (mantissa + 1);
  auto const squared = t * t;
  double series      = 0;
  for (int power = 23; power >= 1; power -= 2) {
    series = series * squared + 1.0 / power;
  }
  return exponent * ln2 + 2 * t * series;
}

/** @brief e to the power of x: 0 far below 0, infinity far above. @param x not a NaN */
[[nodiscard]] inline double exponential(double x) noexcept
{
  constexpr double ln2     = std::numbers::ln2;
  constexpr double largest = 1024 * ln2;  // past the exponents that there are
  if (x > largest) { return HUGE_VAL; }
  if (x < -1.5 * largest) { return 0; }
  auto const twos = std::floor(x / ln2 + 0.5);
  auto const rest = x - twos * ln2;  // at most 0.35
  double series   = 1;
  for (int power = 14; power >= 1; --power) {
    series = 1 + series * rest / power;
  }
  return std::ldexp(series, static_cast<int>(twos));  // exact
}

}  // namespace rmm_uvm::sim
