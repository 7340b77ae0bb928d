// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/block_mover.hpp>
#include <rmm_uvm/residency/budget/neighbor_memory.hpp>
#include <rmm_uvm/residency/neighbor_paths.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t sure_to_be_kept = 4;  // with a quarter of its reserve free, a neighbour's
                                            // driver has not yet had to hand out what it keeps

/** @brief What stays free of a neighbour's memory. */
[[nodiscard]] std::size_t reserve_of(device_memory const& memory) noexcept
{
  return static_cast<std::size_t>(static_cast<double>(memory.total_bytes) *
                                  residency_settings::reserve_fraction);
}

/** @brief Bytes of the blocks that a piece lies in: neighbours are held block by block. */
[[nodiscard]] std::size_t blocks_in(memory_range piece) noexcept
{
  return va_block_ceil(piece.end()) - va_block_floor(piece.address);
}

/** @brief Counts memory that neighbours keep for a block as room. */
void has_room_for(std::vector<neighbor_state>& seen, block_record const& block) noexcept
{
  for (std::size_t number = 0; number < seen.size(); ++number) {
    if (block.has_chunk(number)) { seen[number].kept_bytes -= va_block_bytes; }
  }
}

}  // namespace

neighbor_memory::neighbor_memory(uvm_driver& driver,
                                 residency_settings const& settings,
                                 budget_ledger& ledger,
                                 work_signal& work)
  : driver_{driver}, settings_{settings}, ledger_{ledger}, work_{work}
{
  for (auto const& each : settings_.neighbors) {
    neighbors_.push_back({each});
    watches_.emplace_back();
  }
}

/**
 * @brief A neighbour's free memory; gives up the lock to ask.
 *
 * Where hardly any is free its owner may have what was kept there: nothing counts as kept any more.
 */
std::optional<device_memory> neighbor_memory::ask(ledger_view& view, std::size_t number)
{
  device_memory there{};
  view.unlock();
  auto const asked = driver_.neighbor_memory(neighbors_[number].which.device_id, there);
  view.relock();
  if (!asked.ok()) {
    ledger_.count_failure(asked);
    return std::nullopt;
  }
  // The kernel driver hands out what is free before what is kept.
  if (there.free_bytes < reserve_of(there) / sure_to_be_kept) { forget_kept(view, number); }
  return there;
}

/** @brief Takes memory that a neighbour kept for blocks which are not there for its owner's. */
void neighbor_memory::forget_kept(ledger_view& view, std::size_t number)
{
  if (neighbors_[number].kept_bytes == 0) { return; }
  view.each([&](block_record& block, memory_range) {
    bool const is_there = block.place == block_place::beside && block.neighbor == number;
    if (!is_there) { owner_has(number, block); }
  });
}

/** @brief What a neighbour kept for a block is its owner's. */
void neighbor_memory::owner_has(std::size_t number, block_record& block) noexcept
{
  if (!block.has_chunk(number)) { return; }
  block.set_chunk(number, false);
  neighbors_[number].kept_bytes -= va_block_bytes;
}

std::uint64_t neighbor_memory::weight_of_kept_now(unsigned& taking) const noexcept
{
  taking = 0;
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    if (neighbors_[number].takes_any()) { return 1; }
    if (neighbors_[number].takes_kept()) { taking |= 1U << number; }
  }
  return weight_of_kept(settings_.rates);
}

refuge neighbor_memory::refuge_for(ledger_view& view, block_list& blocks)
{
  unsigned passed_over = 0;
  look_who_is_busy(view);
  while (true) {
    auto seen = neighbors_;            // anew each time: the lock was given up
    for (auto const& each : blocks) {  // what is kept for these is room for these
      has_room_for(seen, *each.record);
    }
    auto const number = choose_neighbor(seen, passed_over);
    if (!number) { break; }
    passed_over |= 1U << *number;
    auto& state = neighbors_[*number];
    block_list ordered;
    block_list others;
    for (auto const& each : blocks) {
      (each.record->has_chunk(*number) ? ordered : others).push_back(each);
    }
    auto const first_other = static_cast<std::ptrdiff_t>(ordered.size());
    ordered.insert(ordered.end(), others.begin(), others.end());
    blocks = std::move(ordered);
    auto const wanted =
      std::min(bytes_of_blocks(blocks.size()), va_block_floor(seen[*number].room_bytes()));
    state.held_bytes += wanted;  // nobody else takes the same room meanwhile
    state.moving_bytes += wanted;
    auto const there    = ask(view, *number);
    auto const kept     = bytes_of_blocks(static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.begin() + first_other, [&](auto const& each) {
        return each.record->has_chunk(*number);  // still
      })));
    std::size_t granted = 0;
    if (there) {
      // What was given back is the owner's, and with what is free its reserve.
      auto const reserve_bytes = std::min(reserve_of(*there), state.answered_bytes);
      view.unlock();  // a claim may wait for others who claim
      granted = settings_.lender->claim(
        state.which.device_id, wanted, there->free_bytes + kept, reserve_bytes);
      view.relock();
    }
    state.held_bytes -= wanted - granted;
    state.moving_bytes -= wanted - granted;
    if (kept > 0) { state.refuses = granted < std::min(wanted, kept); }
    if (granted < bytes_of_blocks(blocks.size())) {
      state.full = true;
    } else if (granted > kept) {
      state.full = false;
    }
    if (granted > 0) {
      watches_[*number].asked.to_bytes += granted;
      return {where(*number), *number, granted / va_block_bytes};
    }
  }
  auto const is_busy = [](neighbor_state const& each) { return each.busy; };
  if (std::any_of(neighbors_.begin(), neighbors_.end(), is_busy)) { ++held_back_; }
  return {location::host(), 0, blocks.size()};
}

/** @brief Asks owners, and now and then the driver, which neighbours are better left alone. */
void neighbor_memory::look_who_is_busy(ledger_view& view) noexcept
{
  auto const now = std::chrono::steady_clock::now();
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const device_id = neighbors_[number].which.device_id;
    auto& watch          = watches_[number];
    if (now - watch.looked >= loads_period) {
      watch.looked = now;
      neighbor_load load;
      view.unlock();  // the first look loads NVML
      auto const told = driver_.read_neighbor_load(device_id, load);
      view.relock();
      // What computes leaves its links and memory to others: only the links count.
      ledger_.count_unread(told);
      auto const of_others = fraction_of_others(load, watch);
      if (told.ok() && of_others) {
        watch.loads.at(watch.count++ % watch.loads.size()) = {{}, {}, of_others};
        if (watch.count >= watch.loads.size()) {
          watch.busy = is_busy(watch.loads, links_busy, watch.busy);
        }
      }
    }
    bool const full         = now < neighbors_[number].full_until;
    neighbors_[number].busy = full || watch.busy || settings_.lender->busy(device_id);
  }
}

/** @brief A move to a neighbour failed: it is not asked for a while, or never again. */
void neighbor_memory::takes_nothing(std::size_t number, status why) noexcept
{
  auto& state = neighbors_[number];
  // A device that fails is not asked again; one that is full may have room another time.
  if (why.code != status_code::out_of_memory) { state.given_up = true; }
  state.full_until = std::chrono::steady_clock::now() + settings_.full_period;
}

void neighbor_memory::arrived(std::size_t number, block_list const& blocks, status moved) noexcept
{
  auto& state      = neighbors_[number];
  auto const bytes = bytes_of_blocks(blocks.size());
  state.moving_bytes -= bytes;
  if (!moved.ok()) {
    state.held_bytes -= bytes;
    settings_.lender->cancel(state.which.device_id, bytes);
    takes_nothing(number, moved);
    return;
  }
  for (auto const& each : blocks) {
    auto& block = *each.record;
    if (block.has_chunk(number)) { state.kept_bytes -= va_block_bytes; }
    block.neighbor = static_cast<std::uint8_t>(number) & 0x7U;
    block.set_chunk(number, true);
  }
  settings_.lender->placed(state.which.device_id, bytes);
  if (!holds_any()) { work_.call(); }  // from now on the thread looks after owners
  harvested_bytes_ += bytes;
  peak_harvested_bytes_ = std::max(peak_harvested_bytes_, harvested_bytes_);
}

void neighbor_memory::left(std::size_t number, std::size_t blocks) noexcept
{
  auto& state = neighbors_[number];
  state.held_bytes -= std::min(state.held_bytes, bytes_of_blocks(blocks));
  state.kept_bytes += bytes_of_blocks(blocks);  // until somebody needs it
  harvested_bytes_ -= std::min(harvested_bytes_, bytes_of_blocks(blocks));
  settings_.lender->release(state.which.device_id, bytes_of_blocks(blocks));
}

void neighbor_memory::count_traffic(claim_list const& blocks) noexcept
{
  for (auto const& each : blocks) {
    if (each.from == no_neighbor || !each.keeps) { continue; }
    watches_[static_cast<std::size_t>(each.from)].asked.from_bytes += each.range.bytes;
  }
}

void neighbor_memory::left(claim_list const& blocks) noexcept
{
  if (!holds_any()) { return; }
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const came = std::count_if(blocks.begin(), blocks.end(), [number](auto const& each) {
      return each.from == static_cast<int>(number);
    });
    if (came > 0) { left(number, static_cast<std::size_t>(came)); }
  }
}

void neighbor_memory::stayed(claim_list const& blocks) noexcept
{
  for (auto const& each : blocks) {
    if (each.from == no_neighbor) { continue; }
    each.record->place           = block_place::beside;
    each.record->on_device_as_of = 0;
    each.record->fetched_ahead   = false;
    ledger_.left(each.range.bytes);
  }
}

void neighbor_memory::forget(block_record const& block) noexcept
{
  if (block.place == block_place::beside) { left(block.neighbor, 1); }
  has_room_for(neighbors_, block);
}

void neighbor_memory::count_in_place(viewed_block const& block) noexcept
{
  in_place_bytes_ += block.range.bytes;
  watches_[block.record->neighbor].asked.from_bytes += block.range.bytes;
}

std::size_t neighbor_memory::wanted_back(ledger_view& view, std::size_t number)
{
  auto& state = neighbors_[number];
  if (state.held_bytes == 0) {
    state.owed_bytes = 0;
    return 0;
  }
  auto const device_id = state.which.device_id;
  // Owners that lend say how much; of others the driver tells what they have left.
  if (auto const there = ask(view, number)) {
    auto const missing = missing_reserve(state, there->free_bytes, reserve_of(*there));
    // Of several who hold memory there each owes its share, as far as they know of one another.
    if (missing > 0) { state.owed_bytes += settings_.lender->excess(device_id, missing); }
  }
  state.owed_bytes = std::min(state.owed_bytes, state.held_bytes);
  return std::min(std::max(state.owed_bytes, settings_.lender->excess(device_id)),
                  state.held_bytes);
}

void neighbor_memory::gave_back(std::size_t number, block_list const& blocks, bool at_once) noexcept
{
  left(number, blocks.size());
  for (auto const& each : blocks) {
    owner_has(number, *each.record);
  }
  rmm_uvm::gave_back(neighbors_[number], bytes_of_blocks(blocks.size()));
  auto const bytes = bytes_of(blocks);
  given_back_bytes_ += bytes;
  if (at_once) { given_back_at_once_bytes_ += bytes; }
}

void neighbor_memory::came_home(std::size_t number, block_list const& blocks) noexcept
{
  for (auto const& each : blocks) {
    owner_has(number, *each.record);
  }
  given_back_bytes_ += bytes_of(blocks);
  rmm_uvm::gave_back(neighbors_[number], bytes_of_blocks(blocks.size()));
}

void neighbor_memory::begin_staging(std::vector<memory_range> const& pieces,
                                    staged_pieces& staged) noexcept
try {
  if (!settings_.multipath || staged_fraction(settings_.rates) <= 0) { return; }
  if (bytes_of(pieces) < 2 * block_mover::most_fetching_movers * settings_.piece_bytes) { return; }
  ledger_view view{ledger_.blocks()};
  look_who_is_busy(view);
  auto seen = neighbors_;
  for (auto const& piece : pieces) {  // what is kept for these is room for these
    view.each(piece, [&](block_record const& block, memory_range) { has_room_for(seen, block); });
  }
  auto const number = choose_neighbor(seen);
  if (!number) { return; }
  auto& state = neighbors_[*number];
  if (!settings_.direct || !driver_.migrates_to(where(*number))) { return; }
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
  staged.where  = where(*number);
  staged.number = *number;
  state.held_bytes += staged_bytes;  // nobody else takes the same room meanwhile
  state.moving_bytes += staged_bytes;
  auto const there    = ask(view, *number);
  std::size_t granted = 0;
  if (there) {
    std::size_t kept = 0;  // still
    for (auto const& piece : staged.pieces) {
      view.each(piece, [&](block_record const& block, memory_range) {
        if (block.has_chunk(*number)) { kept += va_block_bytes; }
      });
    }
    auto const reserve_bytes = std::min(reserve_of(*there), state.answered_bytes);
    view.unlock();  // a claim may wait for others who claim
    granted = settings_.lender->claim(
      state.which.device_id, staged_bytes, there->free_bytes + kept, reserve_bytes);
    view.relock();
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

void neighbor_memory::go_by_the_way(memory_range piece, staged_pieces& staged) noexcept
{
  auto const ends_before = [](memory_range a, memory_range b) { return a.address < b.address; };
  auto const found =
    std::lower_bound(staged.pieces.begin(), staged.pieces.end(), piece, ends_before);
  if (found == staged.pieces.end() || found->address != piece.address || staged.full) { return; }
  auto const moved = driver_.migrate(piece, staged.where);
  auto& went       = staged.done[static_cast<std::size_t>(found - staged.pieces.begin())];
  went             = moved.ok() ? staged_pieces::went : staged_pieces::failed;
  if (moved.ok()) { return; }
  staged.full = true;
  ledger_view const view{ledger_.blocks()};
  ledger_.count_failure(moved);
  // Not given up for that: what leaves may go there by libcuda.
  takes_nothing(staged.number, {status_code::out_of_memory, 0, "go_by_the_way"});
}

void neighbor_memory::end_staging(staged_pieces const& staged) noexcept
{
  if (staged.pieces.empty()) { return; }
  ledger_view view{ledger_.blocks()};
  auto& state = neighbors_[staged.number];
  state.held_bytes -= staged.claimed_bytes;
  state.moving_bytes -= staged.claimed_bytes;
  if (staged.claimed_bytes > 0) {
    settings_.lender->cancel(state.which.device_id, staged.claimed_bytes);
  }
  for (std::size_t piece = 0; piece < staged.pieces.size(); ++piece) {
    if (staged.done[piece] == 0) { continue; }
    // Also of what failed some may have been there.
    if (staged.done[piece] == staged_pieces::went) { staged_bytes_ += staged.pieces[piece].bytes; }
    view.change(staged.pieces[piece], never_used, [&](block_record& block, memory_range) {
      if (block.has_chunk(staged.number)) { return; }
      block.set_chunk(staged.number, true);
      state.kept_bytes += va_block_bytes;
    });
  }
}

void neighbor_memory::tell(residency_statistics& told) const noexcept
{
  told.harvested_bytes          = harvested_bytes_;
  told.peak_harvested_bytes     = peak_harvested_bytes_;
  told.in_place_bytes           = in_place_bytes_;
  told.staged_bytes             = staged_bytes_;
  told.given_back_bytes         = given_back_bytes_;
  told.given_back_at_once_bytes = given_back_at_once_bytes_;
  told.held_back                = held_back_;
}

}  // namespace rmm_uvm
