// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/discards.hpp>

#include <algorithm>
#include <exception>
#include <vector>

namespace rmm_uvm {

block_mover::block_mover(uvm_driver& driver,
                         residency_settings const& settings,
                         budget_ledger& ledger,
                         memory_adviser* adviser) noexcept
  : driver_{driver},
    settings_{settings},
    ledger_{ledger},
    adviser_{adviser},
    // One list each way at a time has its own; the caller of each is one of them.
    movers_{driver.evicting_threads() + fetching_movers - 2}
{
}

status block_mover::move_all(range_list ranges,
                             location where,
                             stream_handle stream,
                             std::atomic<std::size_t>& moved_bytes) noexcept
try {
  bool const fetches   = where.device_id == driver_.info().device_id;
  auto const movers    = fetches ? fetching_movers : driver_.evicting_threads();
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
  return move_together(pieces, movers, one_piece);
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "move_all"};
}

status block_mover::move_together(range_list pieces,
                                  std::size_t threads,
                                  piece_movers::move_one const& move) noexcept
{
  if (pieces.empty()) { return {}; }
  auto const result = movers_.move_all(pieces, driver_.begin_together(threads), move);
  driver_.end_together();
  return result;
}

status block_mover::move_now(memory_range range, location where, stream_handle stream) noexcept
{
  if (moves_directly(where)) {
    auto const result = driver_.migrate(range, where);
    if (result.ok()) { return result; }
    ledger_view const view{ledger_.blocks()};
    ledger_.count_failure(result);
  }
  return driver_.prefetch(range, where, stream);
}

status block_mover::send(range_list ranges,
                         location where,
                         stream_handle stream,
                         bool advised) noexcept
{
  bool const directly = moves_directly(where);
  if (advised) {
    auto const left = adviser_->to_host(ranges, stream, directly);
    ledger_view const view{ledger_.blocks()};
    ledger_.count_if_failed(left.advised);
    ledger_.count_if_failed(left.direct);
    return left.moved;
  }
  std::atomic<std::size_t> moved_bytes{0};
  auto const result = move_all(ranges, where, stream, moved_bytes);
  // What goes there by libcuda must have gone before anything brings it back past libcuda.
  bool const both = !directly && moves_directly(location::host());
  return result.ok() && both ? driver_.synchronize(stream) : result;
}

status block_mover::to_host_now(range_list ranges) noexcept
{
  stream_handle evictions = nullptr;
  auto result             = driver_.own_stream(own_stream_use::evictions, evictions);
  if (!result.ok()) { return result; }
  if (any_advised()) {
    result = adviser_->to_host(ranges, evictions, moves_directly(location::host())).moved;
  } else {
    std::atomic<std::size_t> moved_bytes{0};
    result = move_all(ranges, location::host(), evictions, moved_bytes);
  }
  // A prefetch returns before it is done, and only then the owner has its memory.
  return result.ok() ? driver_.synchronize(evictions) : result;
}

status block_mover::discard(range_list ranges, bool frees_are_done) noexcept
{
  if (!frees_are_done) {
    stream_handle frees = nullptr;
    auto result         = driver_.own_stream(own_stream_use::frees, frees);
    if (result.ok()) { result = driver_.synchronize(frees); }
    if (!result.ok()) { return result; }
  }
  return discard_at_once(driver_, ranges);
}

}  // namespace rmm_uvm
