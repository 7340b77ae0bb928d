// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/driver/link_rates.hpp>
#include <rmm_uvm/driver/memory.hpp>
#include <rmm_uvm/driver/status.hpp>
#include <rmm_uvm/driver/stream.hpp>
#include <rmm_uvm/driver/uvm_driver.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rmm_uvm {

/**
 * @brief Measures links by moving managed memory of its own over them, and gives it back.
 *
 * In pieces as residency moves them: past libcuda where the driver can, else by prefetches that
 * follow each other. A first round, which takes the pages of the host, does not count.
 *
 * @tparam Clock callable that returns nanoseconds
 */
template <typename Clock>
class link_measurement {
 public:
  static constexpr std::size_t piece_bytes = 4 * va_block_bytes;  ///< one call
  static constexpr std::size_t rounds      = 5;                   ///< of which medians are taken

  link_measurement(uvm_driver& driver, Clock const& now_ns) : driver_{driver}, now_ns_{now_ns} {}

  /**
   * @brief Measures; blocks until all is done.
   * @param neighbor an opened one, or `location::host_id`: the link to the host only
   * @param bytes managed memory to move, at least a block
   * @param[out] rates set on success
   */
  status measure(int neighbor, std::size_t bytes, link_rates& rates) noexcept
  {
    if (bytes < va_block_bytes || neighbor == driver_.info().device_id) {
      return {status_code::invalid_value, 0, "measure_links"};
    }
    memory_range memory{0, bytes};
    if (auto const failed = driver_.own_stream(own_stream_use::arrivals, stream_); !failed.ok()) {
      return failed;
    }
    if (auto const failed = driver_.allocate_managed(bytes, memory.address); !failed.ok()) {
      return failed;
    }
    link_rates found;
    auto const moved = measure(memory, neighbor, found);
    auto const freed = driver_.free_managed(memory.address);
    if (moved.ok() && freed.ok()) { rates = found; }
    return moved.ok() ? freed : moved;
  }

 private:
  struct leg {
    location where{};                           // its end
    std::uint64_t link_rates::* rate{nullptr};  // what it measures
    std::array<std::uint64_t, rounds> of{};     // its rates
  };

  status measure(memory_range memory, int neighbor, link_rates& found) noexcept
  {
    auto const device = location::device(driver_.info().device_id);
    std::array legs{leg{device, &link_rates::to_device_bytes_per_second},
                    leg{location::device(neighbor), &link_rates::to_neighbor_bytes_per_second},
                    leg{device, &link_rates::from_neighbor_bytes_per_second},
                    leg{location::host(), &link_rates::to_host_bytes_per_second}};
    auto const asked = [&](std::size_t number) {
      return neighbor != location::host_id || number == 0 || number == 3;
    };
    std::int64_t ns = 0;
    if (auto const failed = move(memory, location::host(), ns); !failed.ok()) { return failed; }
    for (std::size_t round = 0; round <= rounds; ++round) {
      for (std::size_t number = 0; number < legs.size(); ++number) {
        if (!asked(number)) { continue; }
        auto& each = legs[number];
        if (auto const failed = move(memory, each.where, ns); !failed.ok()) { return failed; }
        if (round == 0) { continue; }
        each.of[round - 1] = static_cast<std::uint64_t>(static_cast<double>(memory.bytes) * 1e9 /
                                                        static_cast<double>(ns));
      }
    }
    for (std::size_t number = 0; number < legs.size(); ++number) {
      if (!asked(number)) { continue; }
      auto& of = legs[number].of;
      std::nth_element(of.begin(), of.begin() + rounds / 2, of.end());
      found.*legs[number].rate = of[rounds / 2];
    }
    return {};
  }

  /** @brief Moves all of it, and waits. @param[out] ns how long that took, at least 1 */
  status move(memory_range memory, location where, std::int64_t& ns) noexcept
  {
    auto const& info = driver_.info();
    auto const direct =
      info.direct_migration.available && (where.is_host() || where.device_id == info.device_id);
    auto const begin = now_ns_();
    for (auto at = memory.address; at < memory.end(); at += piece_bytes) {
      memory_range const piece{at, std::min(piece_bytes, memory.end() - at)};
      auto const moved =
        direct ? driver_.migrate(piece, where) : driver_.prefetch(piece, where, stream_);
      if (!moved.ok()) { return moved; }
    }
    if (!direct) {
      if (auto const done = driver_.synchronize(stream_); !done.ok()) { return done; }
    }
    ns = std::max<std::int64_t>(1, static_cast<std::int64_t>(now_ns_()) - begin);
    return {};
  }

  uvm_driver& driver_;
  Clock const& now_ns_;
  stream_handle stream_{nullptr};
};

}  // namespace rmm_uvm
