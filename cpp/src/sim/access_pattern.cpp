// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/access_pattern.hpp>
#include <rmm_uvm/sim/portable_math.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rmm_uvm::sim {
namespace {

/** @brief 2^64 divided by the golden ratio, odd: the increment of the SplitMix64 generator. */
constexpr std::uint64_t golden = 0x9E37'79B9'7F4A'7C15;
/** @brief One bucket in so many lies across two pages: 32 bytes, unaligned. */
constexpr std::uint64_t buckets_per_crossing = 128;

/** @brief A number near `wanted` that has no divisor in common with `range`. */
[[nodiscard]] std::uint64_t coprime_near(std::uint64_t wanted, std::uint64_t range) noexcept
{
  auto result = std::max<std::uint64_t>(wanted % range, 1);
  while (std::gcd(result, range) != 1) {
    ++result;
  }
  return result;
}

}  // namespace

access_cursor::access_cursor(access_pattern const& pattern, std::uint64_t range_pages)
  : pattern_{pattern},
    range_pages_{range_pages},
    state_{pattern.seed * golden + 1},
    spread_{
      coprime_near(static_cast<std::uint64_t>(static_cast<double>(range_pages) * 0.618'033'988'749),
                   range_pages)}
{
  pattern_.stride_pages = std::clamp<std::uint64_t>(pattern_.stride_pages, 1, range_pages);
  if (pattern_.kind == pattern_kind::zipf) {
    log_end_   = natural_log(static_cast<double>(range_pages_) + 1);
    end_power_ = exponential((1 - pattern_.exponent) * log_end_);
  }
  // A cycle through all pages: start and step both from the seed.
  if (pattern_.kind == pattern_kind::pointer_chase) {
    place_  = below(range_pages_);
    spread_ = coprime_near(below(range_pages_), range_pages_);
  }
}

std::uint64_t access_cursor::draw() noexcept
{
  state_ += golden;
  auto z = state_;
  z      = (z ^ (z >> 30U)) * 0xBF58'476D'1CE4'E5B9;
  z      = (z ^ (z >> 27U)) * 0x94D0'49BB'1331'11EB;
  return z ^ (z >> 31U);
}

std::uint64_t access_cursor::below(std::uint64_t bound) noexcept
{
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(draw()) * bound) >> 64U);
}

std::uint64_t access_cursor::zipf_rank() noexcept
{
  // The continuous distribution x^-exponent on [1, pages + 1), inverted.
  auto const u    = static_cast<double>(draw() >> 11U) * 0x1p-53;
  auto const s    = 1 - pattern_.exponent;
  auto const x    = std::abs(s) < 1e-9 ? exponential(u * log_end_)
                                       : exponential(natural_log(1 + u * (end_power_ - 1)) / s);
  auto const last = static_cast<double>(range_pages_);
  return static_cast<std::uint64_t>(std::clamp(x, 1.0, last)) - 1;
}

bool access_cursor::next(std::uint64_t most, page_run& run) noexcept
{
  auto const single = [&](std::uint64_t page) {
    run = {page, 1};
    ++done_;
    return true;
  };
  switch (pattern_.kind) {
    case pattern_kind::sequential: {
      if (place_ >= range_pages_) { return false; }
      run = {place_, std::min(most, range_pages_ - place_)};
      place_ += run.count;
      return true;
    }
    case pattern_kind::strided: {
      if (done_ >= range_pages_) { return false; }
      auto const page = place_;
      place_ += pattern_.stride_pages;
      if (place_ >= range_pages_) { place_ = page % pattern_.stride_pages + 1; }
      return single(page);
    }
    case pattern_kind::recorded:
      return pattern_.pages != nullptr && done_ < pattern_.pages->size() &&
             single((*pattern_.pages)[done_]);
    default: break;
  }
  if (done_ >= pattern_.count) { return false; }
  switch (pattern_.kind) {
    case pattern_kind::zipf:
      return single(static_cast<std::uint64_t>(static_cast<unsigned __int128>(zipf_rank()) *
                                               spread_ % range_pages_));
    case pattern_kind::pointer_chase: {
      auto const page = place_;
      place_          = (place_ + spread_) % range_pages_;
      return single(page);
    }
    case pattern_kind::hash_join_probe: {
      auto const page    = below(range_pages_);
      auto const crosses = below(buckets_per_crossing) == 0 && page + 1 < range_pages_ && most > 1;
      run                = {page, crosses ? 2U : 1U};
      ++done_;
      return true;
    }
    default: return single(below(range_pages_));
  }
}

}  // namespace rmm_uvm::sim
