// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How ranges are moved: in pieces, by several threads, past libcuda where that works.
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <exception>
#include <vector>

namespace rmm_uvm {
namespace {

// Threads that move pieces of one list: more are no faster, or hold up kernels (measured, see
// there).
constexpr std::size_t evicting_movers = 4;
constexpr std::size_t fetching_movers = 2;

}  // namespace

/**
 * @brief Moves ranges, and as much of them at once as is faster.
 *
 * What bounds one thread past libcuda is the driver's work on the processor: measured
 * (benchmarks/migration_threads.py, H200), 4 threads evict at 1.3 times the rate of one, 2 fetch at
 * 1.5 times. Where pages come by faults one moves all, as in the kernel driver.
 * @return the first failure, after which nothing was begun
 */
status residency_manager::move_all(range_list ranges,
                                   location where,
                                   stream_handle stream,
                                   std::atomic<std::size_t>& moved_bytes) noexcept
try {
  bool const fetches   = where.device_id == driver_->info().device_id;
  auto const movers    = fetches ? fetching_movers : evicting_movers;
  auto const most      = fetches ? settings_.fetch_bytes : settings_.piece_bytes;
  auto const one_piece = [&](memory_range piece) {
    auto const result = move_now(piece, where, stream);
    if (result.ok()) { moved_bytes += piece.bytes; }
    return result;
  };
  if (!settings_.fetch || !moves_directly(where)) { return movers_.move_all(ranges, 1, one_piece); }
  // A list of a few long pieces is shared out as well.
  auto const share = (bytes_of(ranges) + movers - 1) / movers;
  std::vector<memory_range> pieces;
  for (auto const& range : ranges) {
    cut(pieces, range, std::min(va_block_ceil(share), most));
  }
  return movers_.move_all(pieces, movers, one_piece);
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "move_all"};
}

bool residency_manager::moves_directly(location where) const noexcept
{
  return settings_.direct && driver_->migrates_to(where);
}

/** @brief Moves a range, past libcuda where that works; else in the order of `stream`. */
status residency_manager::move_now(memory_range range,
                                   location where,
                                   stream_handle stream) noexcept
{
  if (moves_directly(where)) {
    auto const result = driver_->migrate(range, where);
    if (result.ok()) { return result; }
    ledger_view const view{ledger_};
    count_failure(result);
  }
  return driver_->prefetch(range, where, stream);
}

/**
 * @brief Fetches ranges that come from several places, all places at once.
 *
 * Each has a link of its own: what comes from one does not wait for what comes from another. By
 * libcuda they come one after the other, as all in a stream does.
 * @param places ranges by where they come from: the host, then each neighbour
 * @return the first failure, after which nothing was begun
 */
status residency_manager::fetch_all(places const& from,
                                    stream_handle stream,
                                    std::atomic<std::size_t>& moved_bytes) noexcept
try {
  auto const here = location::device(driver_->info().device_id);
  auto const used = static_cast<std::size_t>(
    std::count_if(from.begin(), from.end(), [](auto const& one) { return !one.empty(); }));
  if (used <= 1 || !settings_.fetch || !moves_directly(here)) {
    status first;
    for (auto const& one : from) {
      auto const result = move_all(one, here, stream, moved_bytes);
      if (first.ok()) { first = result; }
    }
    return first;
  }
  places cut_up{from.size()};
  for (std::size_t place = 0; place < from.size(); ++place) {
    auto const share = (bytes_of(from[place]) + fetching_movers - 1) / fetching_movers;
    for (auto const& range : from[place]) {
      cut(cut_up[place], range, std::min(va_block_ceil(share), settings_.piece_bytes));
    }
  }
  return movers_.move_all(interleaved(cut_up),
                          std::min(used * fetching_movers, evicting_movers),
                          [&](memory_range piece) {
                            auto const result = move_now(piece, here, stream);
                            if (result.ok()) { moved_bytes += piece.bytes; }
                            return result;
                          });
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "fetch_all"};
}

}  // namespace rmm_uvm
