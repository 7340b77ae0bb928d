// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// How ranges are moved: in pieces, by several threads, past libcuda where that works.
#include <rmm_uvm/residency/neighbor_paths.hpp>
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

/** @brief A claim that ends with the scope. */
struct claim_to_cancel {
  neighbor_lender* lender;
  int device_id;
  std::size_t bytes;

  claim_to_cancel(neighbor_lender* of, int device, std::size_t claimed) noexcept
    : lender{of}, device_id{device}, bytes{claimed}
  {
  }
  claim_to_cancel(claim_to_cancel const&)            = delete;
  claim_to_cancel& operator=(claim_to_cancel const&) = delete;
  claim_to_cancel(claim_to_cancel&&)                 = delete;
  claim_to_cancel& operator=(claim_to_cancel&&)      = delete;
  ~claim_to_cancel()
  {
    if (lender != nullptr) { lender->cancel(device_id, bytes); }
  }
};

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
  return move_together(pieces, movers, one_piece);
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "move_all"};
}

/** @brief Has several threads move pieces; as many as the driver does not play out itself. */
status residency_manager::move_together(range_list pieces,
                                        std::size_t threads,
                                        piece_movers::move_one const& move) noexcept
{
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

/** @brief A neighbour over whose link to the host some of a burst may come; room there is claimed.
 */
std::optional<residency_manager::refuge> residency_manager::begin_staging(places const& from)
{
  auto const wanted  = evicting_movers * settings_.piece_bytes;
  bool const advised = adviser_ != nullptr && adviser_->advised_bytes() > 0;
  if (!settings_.multipath || advised || bytes_of(from.front()) < 2 * wanted) {
    return std::nullopt;
  }
  ledger_view view{ledger_};
  auto const number = choose_neighbor(neighbors_);
  if (!number) { return std::nullopt; }
  auto const device_id = neighbors_[*number].which.device_id;
  auto const where     = location::device(device_id);
  if (!moves_directly(where) || staged_fraction(settings_.rates) <= 0) { return std::nullopt; }
  auto const there = ask_neighbor(view, device_id);
  if (!there) { return std::nullopt; }
  view.lock().unlock();
  auto const granted =
    settings_.lender->claim(device_id, wanted, there->free_bytes, reserve_of(*there));
  if (granted < wanted) {
    settings_.lender->cancel(device_id, granted);
    return std::nullopt;
  }
  return refuge{where, *number, granted / va_block_bytes};
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
  bool const direct  = settings_.fetch && moves_directly(here);
  auto const staging = direct ? begin_staging(from) : std::nullopt;
  claim_to_cancel const claimed{staging ? settings_.lender.get() : nullptr,
                                staging ? staging->where.device_id : 0,
                                staging ? staging->blocks * va_block_bytes : 0};
  if (!direct || (used <= 1 && !staging)) {
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
  std::vector<std::uintptr_t> by_the_way;  // begins of pieces, ascending
  if (staging) {
    for (std::size_t piece = 0; piece < cut_up.front().size(); ++piece) {
      if (is_staged(piece, settings_.rates)) {
        by_the_way.push_back(cut_up.front()[piece].address);
      }
    }
    std::sort(by_the_way.begin(), by_the_way.end());
  }
  std::atomic<std::size_t> staged_bytes{0};
  auto const ways = used + (staging ? 1 : 0);
  auto const result =
    move_together(interleaved(cut_up),
                  std::min(ways * fetching_movers, evicting_movers),
                  [&](memory_range piece) {
                    if (std::binary_search(by_the_way.begin(), by_the_way.end(), piece.address) &&
                        driver_->migrate(piece, staging->where).ok()) {
                      staged_bytes += piece.bytes;
                    }
                    auto const moved = move_now(piece, here, stream);
                    if (moved.ok()) { moved_bytes += piece.bytes; }
                    return moved;
                  });
  if (staging) {
    ledger_view const view{ledger_};
    counts_.staged_bytes += staged_bytes;
  }
  return result;
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "fetch_all"};
}

}  // namespace rmm_uvm
