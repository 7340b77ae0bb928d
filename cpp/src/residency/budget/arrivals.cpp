// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/arrivals.hpp>
#include <rmm_uvm/residency/discards.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace rmm_uvm {
namespace {

/** @brief Bytes of blocks of a kind that are there already, as far as is known. */
template <typename Kind>
[[nodiscard]] std::size_t counted_bytes(claim_list const& blocks, Kind const& is_of_kind) noexcept
{
  std::size_t bytes = 0;
  for (auto const& each : blocks) {
    if (each.counted && is_of_kind(each)) { bytes += each.range.bytes; }
  }
  return bytes;
}

/**
 * @brief Adds a block to ranges, each as long as one call may be, and of one slab.
 * @param left_out a part of a block that is not to come; empty for none
 */
void add_block(std::vector<memory_range>& ranges,
               memory_range block,
               bool first_of_slab,
               std::size_t most_bytes,
               memory_range left_out)
{
  if (block.covers(left_out)) {
    memory_range const before{block.address, left_out.address - block.address};
    if (before.bytes > 0) { add_block(ranges, before, first_of_slab, most_bytes, {}); }
    block = {left_out.end(), block.end() - left_out.end()};
  }
  if (block.bytes == 0) { return; }
  bool const joins = !first_of_slab && !ranges.empty() && ranges.back().end() == block.address &&
                     ranges.back().bytes + block.bytes <= most_bytes;
  if (joins) {
    ranges.back().bytes += block.bytes;
  } else {
    ranges.push_back(block);
  }
}

/**
 * @brief Whether a block stays where it is.
 *
 * Where kernels use it through a mapping; what was mapped on the host for a request larger than the
 * budget comes for one that fits. And where it waits for its first use already, and a new
 * allocation has a part of it: if it has all of what lives there, the block was free in between.
 */
[[nodiscard]] bool stays(block_record const& block,
                         arrival_reason why,
                         memory_range wanted,
                         memory_range whole) noexcept
{
  bool const on_neighbor = block.place == block_place::beside;
  bool const in_place =
    block.in_place && (why == arrival_reason::ahead || (why == arrival_reason::use && on_neighbor));
  bool const waits = block.waits && why == arrival_reason::allocation &&
                     block.live_bytes > bytes_in_common(wanted, whole);
  return in_place || waits;
}

/** @brief Whether a block is on the device for sure; what is being copied was, and stays. */
[[nodiscard]] bool is_there(block_record const& block, epoch_number as_of) noexcept
{
  return block.copying || block.present(as_of);
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

/** @brief The missing, and what is there of the same request: it does not leave for the rest. */
std::size_t arrivals::needed_bytes(ledger_view& view,
                                   range_list wanted,
                                   std::size_t missing_bytes) const
{
  std::size_t most_bytes = 0;
  for (auto const& range : wanted) {
    most_bytes += bytes_of_blocks(range);
  }
  if (most_bytes <= with_.ledger.budget_bytes()) { return missing_bytes; }  // all of it fits
  std::vector<memory_range> there;
  for (auto const& range : wanted) {
    view.each(range, [&](block_record const& block, memory_range whole) {
      if (block.place == block_place::device) { there.push_back(whole); }
    });
  }
  std::sort(
    there.begin(), there.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
  auto const same = [](auto const& a, auto const& b) { return a.address == b.address; };
  there.erase(std::unique(there.begin(), there.end(), same), there.end());
  return missing_bytes + bytes_of(there);
}

claim_list arrivals::claim(ledger_view& view, arrival_request const& request)
{
  claim_list missing;
  auto const why = request.why;
  // Who may write what is being copied has waited for it.
  with_.ledger.wait_until_free(view, request.wanted, why == arrival_reason::use);
  if (with_.ledger.ended()) { return missing; }
  auto const as_of = with_.moved.epoch();
  // Freed since it was expected, or looked at: nobody uses it, and its slab may go.
  bool const expected =
    why == arrival_reason::ahead || why == arrival_reason::doubt || why == arrival_reason::away;
  // What belongs to the host is read through a mapping: it comes only when asked for.
  bool const called   = why == arrival_reason::asked || why == arrival_reason::allocation;
  bool const discards = with_.driver.info().discard.available;
  for (auto const& range : request.wanted) {
    view.each(range, [&](block_record& block, memory_range whole) {
      if (is_there(block, as_of)) { return; }
      bool const there = block.place == block_place::device;
      if (stays(block, why, range, whole)) { return; }
      if (expected && block.dead()) { return; }
      if (why == arrival_reason::doubt && !there) { return; }  // it left since
      if (block.used_on_host() && !called && !block.discarded) { return; }
      // Contents of a new allocation are dead by definition; beside it others may live.
      bool const keeps = !request.allocation.covers(whole);
      bool const away  = block.place == block_place::host;
      bool const never = !keeps && block.is_new();
      block.waits      = false;
      bool const empty = block.discarded || (never && discards);
      bool const first = view.slab_begins(whole.address);
      int const from   = block.place == block_place::beside ? block.neighbor : no_neighbor;
      missing.push_back(
        {&block, whole, keeps, empty, there, away, first, from, block.in_place, block.copied});
      missing.back().kept = keeps && with_.copies.wanted(block);
    });
  }
  if (request.wanted.size() > 1) {  // neighbours share blocks
    std::sort(missing.begin(), missing.end(), [](auto const& a, auto const& b) {
      return a.range.address < b.range.address;
    });
    auto const same = [](auto const& a, auto const& b) { return a.record == b.record; };
    missing.erase(std::unique(missing.begin(), missing.end(), same), missing.end());
  }
  return missing;
}

void arrivals::bring(arrival_request const& request)
{
  std::unique_lock room{room_, std::defer_lock};
  auto& ledger = with_.ledger;
  ledger_view view{ledger.blocks()};
  // While all slabs fit nobody waits for the budget, but for what is new.
  bool const waits = request.why != arrival_reason::ahead && ledger.under_pressure();
  std::optional<waited_time::scope> waited;
  waited.emplace(waited_, waits);
  if (request.why == arrival_reason::use) { with_.waiting.note_use(); }
  auto missing = claim(view, request);
  if (missing.empty()) { return; }
  auto const missing_bytes = uncounted_bytes(missing);
  auto const all_bytes     = needed_bytes(view, request.wanted, missing_bytes);
  if (all_bytes > ledger.budget_bytes()) {
    ++too_large_;
    too_large_bytes_        = std::max(too_large_bytes_, all_bytes);
    auto const budget_bytes = ledger.budget_bytes();  // it may change, once the lock is given up
    view.unlock();
    waited.reset();  // each part counts by itself
    bring_in_parts(request, budget_bytes);
    return;
  }
  if (ledger.resident_bytes() + missing_bytes <= ledger.budget_bytes()) {
    bring_claimed(view, missing, request);
    return;
  }
  // Whoever makes room does so alone: two with half of the room each would wait for each other.
  view.unlock();
  room.lock();
  view.relock();
  bring_without_room(view, request);
}

void arrivals::bring_without_room(ledger_view& view, arrival_request const& request)
{
  auto missing = claim(view, request);
  if (with_.ledger.ended()) { return; }
  if (request.why == arrival_reason::allocation) { with_.waiting.let_wait(view, missing); }
  if (!missing.empty()) { bring_claimed(view, missing, request); }
}

/** @brief Brings blocks that are missing; gives up the lock. */
void arrivals::bring_claimed(ledger_view& view, claim_list& missing, arrival_request const& request)
{
  if (with_.settings.fetch) { choose_renewed(missing, request.stream); }
  auto const left_out = admit(view, missing, request);
  if (request.why != arrival_reason::ahead && uncounted_bytes(missing) > 0) {
    with_.offer.await_others(view);
  }
  bool came = true;
  if (with_.settings.fetch) {
    with_.neighbors.count_traffic(missing);
    with_.offer.moving_begins();
    view.unlock();
    came = issue(missing, request, left_out);
    view.relock();
    with_.offer.moving_ends();
  } else {
    with_.advice.end(view, missing);
  }
  settle(missing, came);
  hold(view, request.wanted, -1);
  with_.ledger.tell_change();
  if (!with_.work.heard()) { with_.offer.tell_if_busy(view); }  // else the thread does
}

void arrivals::settle(claim_list const& missing, bool came) noexcept
{
  if (came) {
    with_.neighbors.left(missing);
  } else {
    with_.neighbors.stayed(missing);
  }
  for (auto const& each : missing) {
    each.record->busy = false;
  }
}

/** @return what of it is not to come, see `waiting_memory::note_new` */
memory_range arrivals::admit(ledger_view& view,
                             claim_list const& missing,
                             arrival_request const& request)
{
  with_.moved.ask_to_device(missing);
  auto const now         = with_.clock.now();
  std::size_t kept_bytes = 0;
  memory_range left_out;
  if (request.why == arrival_reason::allocation) {
    left_out = with_.waiting.note_new(view, missing, request.wanted.front());
  }
  for (auto const& each : missing) {
    auto& block           = *each.record;
    block.busy            = true;
    block.discarded       = false;
    block.place           = block_place::device;
    block.waits           = each.range.covers(left_out);
    block.slept           = false;
    block.on_device_as_of = block.waits ? 0 : with_.moved.last_epoch();
    block.prefetched      = now;
    block.in_place        = false;
    with_.ledger.has_chunk(block, each.range.bytes);
    if (!each.counted) {
      block.copied        = false;
      block.early         = false;
      block.arrived       = now;
      block.fetched_ahead = request.why == arrival_reason::ahead;
    }
    if (each.kept) {
      with_.copies.note_kept(block, each.range);  // so that a free waits for it
      kept_bytes += each.range.bytes;
    }
  }
  for (auto const& range : request.wanted) {
    view.change(range, now, [](block_record&, memory_range) {});
  }
  auto const coming_bytes = uncounted_bytes(missing);
  with_.ledger.comes(coming_bytes);
  with_.offer.offer_idle();
  bool const fits = with_.ledger.resident_bytes() <= with_.ledger.budget_bytes();
  if (!fits && request.why != arrival_reason::ahead) { with_.room.set_short(true); }
  // What is there already of the same request does not leave to make room for the rest of it.
  hold(view, request.wanted, 1);
  auto const waits =
    request.why == arrival_reason::ahead ? std::nullopt : std::optional{request.stream};
  try {
    with_.room.make_room(view, with_.ledger.budget_bytes(), waits);
  } catch (...) {  // no list of victims: the budget is exceeded, and nobody waits for ever
    with_.ledger.count_failure({status_code::out_of_memory, 0, "make_room"});
  }
  with_.ledger.has_room(coming_bytes);
  with_.copies.note_coming(kept_bytes);
  return left_out;
}

/**
 * @brief Chooses the blocks that come without their contents: dead ones that no work uses any more.
 *
 * A request's stream waits for every free of what it is handed, so that all of them are done where
 * it is idle. The others come as they are: a discard must not wait in a stream.
 */
void arrivals::choose_renewed(claim_list& blocks, stream_handle stream) noexcept
{
  if (!with_.driver.info().discard.available) { return; }
  std::optional<bool> idle;
  for (auto& each : blocks) {
    if (each.keeps || each.empty) { continue; }
    if (!idle) {
      with_.marks.look();
      idle = with_.driver.idle(stream);
    }
    each.renewed = *idle || (!each.record->unfenced && with_.marks.free_is_done(*each.record));
    if (each.renewed) { continue; }
    undiscarded_bytes_ += each.range.bytes;
    if (!each.counted) { undiscarded_copied_bytes_ += each.range.bytes; }
  }
}

/**
 * @brief In which list a block comes: from the host, from each neighbour, or perhaps here already.
 *
 * The last must not go by way of a neighbour; where nothing does, it comes in one piece with the
 * first.
 */
std::size_t arrivals::place_of(claimed_block const& block) const noexcept
{
  if (block.from != no_neighbor) { return static_cast<std::size_t>(block.from) + 1; }
  return block.away || !with_.settings.multipath ? 0 : with_.neighbors.size() + 1;
}

/** @return whether all of it was asked to come */
bool arrivals::issue(claim_list const& blocks,
                     arrival_request const& request,
                     memory_range left_out) noexcept
try {
  with_.advice.end(blocks);  // first: it takes no memory, and what faults in must not be a copy
  auto const device               = location::device(with_.driver.info().device_id);
  bool const ahead                = request.why == arrival_reason::ahead;
  auto const most                 = ahead ? with_.settings.piece_bytes : with_.settings.fetch_bytes;
  auto const comes_empty          = [](auto const& each) { return each.empty || each.renewed; };
  std::size_t from_neighbor_bytes = 0;
  std::vector<memory_range> fresh;          // nothing in them is anybody's
  std::vector<memory_range> twice;          // of these the host keeps its copy
  places kept{2 + with_.neighbors.size()};  // to come with contents, by where they come from
  for (auto const& each : blocks) {
    if (comes_empty(each)) {
      add_block(fresh, each.range, each.first, any_length, left_out);
    } else {
      add_block(kept[place_of(each)], each.range, each.first, most, left_out);
      if (each.kept) { add_block(twice, each.range, each.first, any_length, {}); }
      if (each.from != no_neighbor) { from_neighbor_bytes += each.range.bytes; }
    }
  }
  status failure;
  auto const noted = [&failure](status result) {
    if (!result.ok()) { failure = result; }
    return result.ok();
  };
  std::size_t renewed_bytes = 0;
  std::size_t fetched_bytes = 0;
  if (!fresh.empty() && noted(renew_at_once(with_.driver, fresh))) {
    renewed_bytes = bytes_of(fresh) - counted_bytes(blocks, comes_empty);
    fresh.clear();
  }
  bool const keeps = !twice.empty() && with_.copies.begin(twice);
  std::atomic<std::size_t> moved_bytes{0};
  static_cast<void>(noted(fetch_all(kept, request.stream, moved_bytes)));
  for (auto const& range : fresh) {  // after a failure: pages would fault one by one
    if (noted(with_.driver.prefetch(range, device, request.stream))) {
      fetched_bytes += range.bytes;
    }
  }
  fetched_bytes += moved_bytes;
  auto const is_there = [&](auto const& each) { return !fresh.empty() || !comes_empty(each); };
  fetched_bytes -= std::min(fetched_bytes, counted_bytes(blocks, is_there));
  ledger_view view{with_.ledger.blocks()};
  if (!keeps) { note_none_kept(blocks); }
  renewed_bytes_ += renewed_bytes;
  (ahead ? fetched_ahead_bytes_ : fetched_bytes_) += fetched_bytes;
  if (failure.ok()) {
    from_neighbor_bytes_ += from_neighbor_bytes;
    return true;
  }
  with_.ledger.count_failure(failure);
  if (with_.settings.multipath) {  // some may be where it went by
    with_.moved.put_in_doubt();
    with_.present.end(view);
  }
  return false;
} catch (...) {  // a list could not be built: pages come by fault
  with_.ledger.count_no_memory("arrivals");
  ledger_view const view{with_.ledger.blocks()};
  note_none_kept(blocks);
  return false;
}

/** @brief Notes that blocks came without a copy that the host keeps. */
void arrivals::note_none_kept(claim_list const& blocks) noexcept
{
  for (auto const& each : blocks) {
    if (each.kept) { with_.copies.note_ended(*each.record, each.range); }
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
status arrivals::fetch_all(places const& from,
                           stream_handle stream,
                           std::atomic<std::size_t>& moved_bytes) noexcept
try {
  constexpr auto fetching = block_mover::fetching_movers;
  auto const here         = location::device(with_.driver.info().device_id);
  auto const used         = static_cast<std::size_t>(
    std::count_if(from.begin(), from.end(), [](auto const& one) { return !one.empty(); }));
  bool const direct = with_.settings.fetch && with_.mover.moves_directly(here);
  places cut_up{from.size()};
  for (std::size_t place = 0; direct && place < from.size(); ++place) {
    auto const share = (bytes_of(from[place]) + fetching - 1) / fetching;
    for (auto const& range : from[place]) {
      cut(cut_up[place], range, std::min(va_block_ceil(share), with_.settings.piece_bytes));
    }
  }
  auto const order = interleaved(cut_up);
  staged_pieces staged;
  if (direct && !with_.mover.any_advised()) { with_.neighbors.begin_staging(cut_up[0], staged); }
  at_the_end const ends{[&]() noexcept { with_.neighbors.end_staging(staged); }};
  if (!direct || (used <= 1 && staged.pieces.empty())) {
    status first;
    for (auto const& one : from) {
      auto const result = with_.mover.move_all(one, here, stream, moved_bytes);
      if (first.ok()) { first = result; }
    }
    return first;
  }
  auto const ways = used + (staged.pieces.empty() ? 0 : 1);
  return with_.mover.move_together(
    order, std::min(ways * fetching, block_mover::most_fetching_movers), [&](memory_range piece) {
      with_.neighbors.go_by_the_way(piece, staged);
      auto const moved = with_.mover.move_now(piece, here, stream);
      if (moved.ok()) { moved_bytes += piece.bytes; }
      return moved;
    });
} catch (std::exception const&) {  // no memory for a list of pieces
  return {status_code::out_of_memory, 0, "fetch_all"};
}

/**
 * @brief A request larger than the budget: the ranges that fit together, the first ones first.
 *
 * The others would drive out what the same work is about to use. They are left to page faults; of
 * an allocation the rest begins on the host, so that it counts when it comes.
 */
void arrivals::bring_in_parts(arrival_request const& request, std::size_t budget_bytes)
{
  std::vector<memory_range> together;
  if (request.why == arrival_reason::allocation && with_.settings.fetch) {
    auto const& all   = request.wanted.front();
    auto const first  = va_block_floor(all.address);
    auto const middle = std::min(all.end(), first + va_block_floor(budget_bytes));
    together.push_back({all.address, middle - all.address});
    begin_on_host({middle, all.end() - middle});
    bring({together, together.front(), request.stream, request.why});
    return;
  }
  std::size_t together_bytes = 0;
  for (auto const& range : request.wanted) {
    auto const bytes = bytes_of_blocks(range);
    if (together_bytes + bytes <= budget_bytes) {
      together.push_back(range);
      together_bytes += bytes;
    } else {
      request.why == arrival_reason::allocation ? leave_to_faults(range) : leave_discarded(range);
    }
  }
  if (together.size() == request.wanted.size()) { return; }
  bring({together, request.allocation, request.stream, request.why});
}

void arrivals::leave_discarded(memory_range range) noexcept
{
  ledger_view view{with_.ledger.blocks()};
  with_.ledger.wait_until_free(view, {&range, 1});
  view.each(range, [](block_record& block, memory_range) { block.discarded = false; });
}

void arrivals::leave_to_faults(memory_range range) noexcept
try {
  ledger_view view{with_.ledger.blocks()};
  with_.present.end(view);
  for (auto const& each : count_as_there(view, range)) {
    with_.ledger.has_chunk(*each.record, each.range.bytes);
    with_.ledger.left_to_faults(each.range.bytes);
  }
  if (with_.ledger.beyond_budget_bytes() > 0) { with_.room.set_short(true); }
} catch (...) {
  with_.ledger.count_no_memory("leave_to_faults");
}

/** @brief What nothing is in counts as on the device: the first writes there move no bytes. */
block_list arrivals::count_as_there(ledger_view& view, memory_range range)
{
  block_list counted;
  with_.ledger.wait_until_free(view, {&range, 1});
  auto const now = with_.clock.now();
  view.change(range, now, [&](block_record& block, memory_range whole) {
    bool const empty = block.discarded || block.place == block_place::nowhere;
    block.discarded  = false;
    block.waits      = false;
    if (!empty || block.place == block_place::device) { return; }
    counted.push_back({&block, whole});
    block.place           = block_place::device;
    block.on_device_as_of = 0;
    block.arrived         = now;
    with_.ledger.comes(whole.bytes);
    with_.ledger.has_room(whole.bytes);
  });
  return counted;
}

/** @brief What nothing is in begins on the host. */
void arrivals::begin_on_host(memory_range range)
{
  ledger_view view{with_.ledger.blocks()};
  with_.present.end(view);
  auto const begins = count_as_there(view, range);
  if (begins.empty() || with_.room.leave(view, begins) > 0) { return; }
  view.each(range, [this](block_record& block, memory_range whole) {  // they stay
    if (block.place == block_place::device) { with_.ledger.has_chunk(block, whole.bytes); }
  });
}

bool arrivals::confirm_present(stream_handle stream)
{
  absent_blocks absent;
  {
    ledger_view view{with_.ledger.blocks()};
    if (with_.present.confirm(view, absent)) { return true; }
  }
  if (absent.empty() || with_.driver.capturing(stream) != capture_state::none) { return false; }
  // Some of them nobody announces, and they would be absent for ever. Not all at once: what is on
  // its way cannot leave for others.
  auto const most       = std::max(with_.settings.fetch_bytes / va_block_bytes, std::size_t{1});
  auto const bring_each = [&](range_list rest, arrival_reason why) {
    while (!rest.empty()) {
      auto const next = rest.first(std::min(most, rest.size()));
      bring({next, {}, stream, why});
      rest = rest.subspan(next.size());
    }
  };
  bring_each(absent.doubtful, arrival_reason::doubt);
  bring_each(absent.away, arrival_reason::away);
  ledger_view view{with_.ledger.blocks()};
  return with_.present.confirm(view, absent);
}

void arrivals::tell(residency_statistics& told) const noexcept
{
  told.fetched_bytes            = fetched_bytes_;
  told.fetched_ahead_bytes      = fetched_ahead_bytes_;
  told.renewed_bytes            = renewed_bytes_;
  told.undiscarded_bytes        = undiscarded_bytes_;
  told.undiscarded_copied_bytes = undiscarded_copied_bytes_;
  told.from_neighbor_bytes      = from_neighbor_bytes_;
  told.too_large                = too_large_;
  told.too_large_bytes          = too_large_bytes_;
  told.waited_ns                = waited_.ns();
}

}  // namespace rmm_uvm
