// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How ranges are moved: in pieces, by several threads, past libcuda where that works.
#include <rmm_uvm/residency/neighbor_paths.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

// Threads that move pieces of one list: more are no faster, or hold up kernels (measured, see
// there).
constexpr std::size_t evicting_movers = 4;
constexpr std::size_t fetching_movers = 2;

/** @brief Bytes of the blocks that a piece lies in: neighbours are held block by block. */
[[nodiscard]] std::size_t blocks_in(memory_range piece) noexcept
{
  return va_block_ceil(piece.end()) - va_block_floor(piece.address);
}

/** @brief Does something when the scope ends. */
template <typename Action>
class at_the_end {
 public:
  explicit at_the_end(Action action) noexcept : action_{std::move(action)} {}
  at_the_end(at_the_end const&)            = delete;
  at_the_end& operator=(at_the_end const&) = delete;
  at_the_end(at_the_end&&)                 = delete;
  at_the_end& operator=(at_the_end&&)      = delete;
  ~at_the_end() { action_(); }

 private:
  Action action_;
};

}  // namespace

/**
 * @brief Moves ranges, and as much of them at once as is faster.
 *
 * What bounds one thread past libcuda is the driver's work on the processor: measured
 * (benchmarks/driver/migration_threads.py, H200), 4 threads evict at 1.3 times the rate of one, 2 fetch at
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
  return move_together(pieces, movers, one_piece);
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "move_all"};
}

/** @brief Has several threads move pieces; as many as the driver does not play out itself. */
status residency_manager::move_together(range_list pieces,
                                        std::size_t threads,
                                        piece_movers::move_one const& move) noexcept
{
  if (pieces.empty()) { return {}; }
  auto const result = movers_.move_all(pieces, driver_->begin_together(threads), move);
  driver_->end_together();
  return result;
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
 * @brief Which pieces of a burst from the host come by way of a neighbour, over its own link.
 *
 * The kernel driver keeps memory there for all that passed: so it is claimed first, and no more
 * pieces go that way than there is room. What memory is kept for already needs none.
 * @param pieces of the burst, in order
 * @param[out] staged no pieces: none goes that way
 */
void residency_manager::begin_staging(std::vector<memory_range> const& pieces,
                                      staged_pieces& staged) noexcept
try {
  bool const advised = adviser_ != nullptr && adviser_->advised_bytes() > 0;
  if (!settings_.multipath || advised || staged_fraction(settings_.rates) <= 0) { return; }
  if (bytes_of(pieces) < 2 * evicting_movers * settings_.piece_bytes) { return; }
  ledger_view view{ledger_};
  look_who_is_busy(view);
  auto seen = neighbors_;
  for (auto const& piece : pieces) {  // what is kept for these is room for these
    view.each(piece, [&](block_record const& block, memory_range) { has_room_for(seen, block); });
  }
  auto const number = choose_neighbor(seen);
  if (!number) { return; }
  auto& state      = neighbors_[*number];
  auto const where = location::device(state.which.device_id);
  if (!moves_directly(where)) { return; }
  auto const room_bytes    = state.room_bytes();
  std::size_t new_bytes    = 0;  // for which there is no memory yet
  std::size_t staged_bytes = 0;  // blocks of all pieces
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    if (!is_staged(piece, settings_.rates)) { continue; }
    std::size_t bytes = 0;
    view.each(pieces[piece], [&](block_record const& block, memory_range) {
      if (!block.has_chunk(*number)) { bytes += va_block_bytes; }
    });
    if (new_bytes + bytes > room_bytes) { continue; }
    staged.pieces.push_back(pieces[piece]);
    new_bytes += bytes;
    staged_bytes += blocks_in(pieces[piece]);
  }
  staged.done.resize(staged.pieces.size());
  // From here on nothing takes memory: what is claimed ends with `end_staging`.
  staged.where  = where;
  staged.number = *number;
  state.held_bytes += staged_bytes;  // nobody else takes the same room meanwhile
  state.moving_bytes += staged_bytes;
  auto const there    = ask_neighbor(view, *number);
  std::size_t granted = 0;
  if (there) {
    std::size_t kept = 0;  // still
    for (auto const& piece : staged.pieces) {
      view.each(piece, [&](block_record const& block, memory_range) {
        if (block.has_chunk(*number)) { kept += va_block_bytes; }
      });
    }
    auto const reserve_bytes = std::min(reserve_of(*there), state.answered_bytes);
    view.lock().unlock();  // a claim may wait for others who claim
    granted = settings_.lender->claim(
      state.which.device_id, staged_bytes, there->free_bytes + kept, reserve_bytes);
    view.lock().lock();
  }
  auto const asked_bytes = staged_bytes;
  while (staged_bytes > granted) {
    staged_bytes -= blocks_in(staged.pieces.back());
    staged.pieces.pop_back();
  }
  state.held_bytes -= asked_bytes - staged_bytes;
  state.moving_bytes -= asked_bytes - staged_bytes;
  if (granted > staged_bytes) {
    settings_.lender->cancel(state.which.device_id, granted - staged_bytes);
  }
  staged.claimed_bytes = staged_bytes;
  watches_[*number].asked.from_bytes += bytes_of(staged.pieces);
} catch (std::exception const&) {  // no memory for a list: nothing was claimed yet
  staged.pieces.clear();
}

/** @brief Has a piece go to the neighbour first, if it is one of those. */
void residency_manager::go_by_the_way(memory_range piece, staged_pieces& staged) noexcept
{
  auto const ends_before = [](memory_range a, memory_range b) { return a.address < b.address; };
  auto const found =
    std::lower_bound(staged.pieces.begin(), staged.pieces.end(), piece, ends_before);
  if (found == staged.pieces.end() || found->address != piece.address || staged.full) { return; }
  auto const moved = driver_->migrate(piece, staged.where);
  auto& went       = staged.done[static_cast<std::size_t>(found - staged.pieces.begin())];
  went             = moved.ok() ? staged_pieces::went : staged_pieces::failed;
  if (moved.ok()) { return; }
  staged.full = true;
  ledger_view const view{ledger_};
  count_failure(moved);
  // Not given up for that: what leaves may go there by libcuda.
  takes_nothing(staged.number, {status_code::out_of_memory, 0, "go_by_the_way"});
}

/** @brief What came by way of a neighbour has left it, and memory is kept there for it. */
void residency_manager::end_staging(staged_pieces const& staged) noexcept
{
  if (staged.pieces.empty()) { return; }
  ledger_view view{ledger_};
  auto& state = neighbors_[staged.number];
  state.held_bytes -= staged.claimed_bytes;
  state.moving_bytes -= staged.claimed_bytes;
  if (staged.claimed_bytes > 0) {
    settings_.lender->cancel(state.which.device_id, staged.claimed_bytes);
  }
  for (std::size_t piece = 0; piece < staged.pieces.size(); ++piece) {
    if (staged.done[piece] == 0) { continue; }
    // Also of what failed some may have been there.
    if (staged.done[piece] == staged_pieces::went) {
      counts_.staged_bytes += staged.pieces[piece].bytes;
    }
    view.each(staged.pieces[piece], [&](block_record& block, memory_range) {
      if (block.has_chunk(staged.number)) { return; }
      block.set_chunk(staged.number, true);
      state.kept_bytes += va_block_bytes;
    });
  }
}

/**
 * @brief Fetches ranges that come from several places, all places at once.
 *
 * Each has a link of its own: what comes from one does not wait for what comes from another. Of a
 * burst from the host some may come by way of a neighbour, over its link to the host. By libcuda
 * they come one after the other, as all in a stream does.
 * @param from ranges by where they come from: the host, then each neighbour
 * @return the first failure, after which nothing was begun
 */
status residency_manager::fetch_all(places const& from,
                                    stream_handle stream,
                                    std::atomic<std::size_t>& moved_bytes) noexcept
try {
  auto const here = location::device(driver_->info().device_id);
  auto const used = static_cast<std::size_t>(
    std::count_if(from.begin(), from.end(), [](auto const& one) { return !one.empty(); }));
  bool const direct = settings_.fetch && moves_directly(here);
  places cut_up{from.size()};
  for (std::size_t place = 0; direct && place < from.size(); ++place) {
    auto const share = (bytes_of(from[place]) + fetching_movers - 1) / fetching_movers;
    for (auto const& range : from[place]) {
      cut(cut_up[place], range, std::min(va_block_ceil(share), settings_.piece_bytes));
    }
  }
  auto const order = interleaved(cut_up);
  staged_pieces staged;
  if (direct) { begin_staging(cut_up.front(), staged); }
  at_the_end const ends{[&]() noexcept { end_staging(staged); }};
  if (!direct || (used <= 1 && staged.pieces.empty())) {
    status first;
    for (auto const& one : from) {
      auto const result = move_all(one, here, stream, moved_bytes);
      if (first.ok()) { first = result; }
    }
    return first;
  }
  auto const ways = used + (staged.pieces.empty() ? 0 : 1);
  return move_together(
    order, std::min(ways * fetching_movers, evicting_movers), [&](memory_range piece) {
      go_by_the_way(piece, staged);
      auto const moved = move_now(piece, here, stream);
      if (moved.ok()) { moved_bytes += piece.bytes; }
      return moved;
    });
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "fetch_all"};
}

}  // namespace rmm_uvm
