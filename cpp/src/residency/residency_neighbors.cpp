// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What lies on other devices: who takes it, and how much is held there.
#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/neighbor_busy.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t sure_to_be_kept = 4;  // with a quarter of its reserve free, a neighbour's
                                            // driver has not yet had to hand out what it keeps

}  // namespace

/** @brief What stays free of a neighbour's memory. */
std::size_t residency_manager::reserve_of(device_memory const& memory) noexcept
{
  return static_cast<std::size_t>(static_cast<double>(memory.total_bytes) *
                                  residency_settings::reserve_fraction);
}

void residency_manager::begin_with_neighbors()
{
  if (settings_.lender == nullptr) { settings_.lender = std::make_shared<free_memory_lender>(); }
  for (auto const& each : settings_.neighbors) {
    neighbors_.push_back({each});
    watches_.emplace_back();
  }
  owner_.looked = std::chrono::steady_clock::now();
  offer_idle();
}

/** @brief Counts memory that neighbours keep for a block as room. */
void residency_manager::has_room_for(std::vector<neighbor_state>& seen,
                                     block_record const& block) noexcept
{
  for (std::size_t number = 0; number < seen.size(); ++number) {
    if (block.has_chunk(number)) { seen[number].kept_bytes -= va_block_bytes; }
  }
}

/**
 * @brief A neighbour's free memory; gives up the lock to ask.
 *
 * Where hardly any is free its owner may have what was kept there: nothing counts as kept any more.
 */
std::optional<device_memory> residency_manager::ask_neighbor(ledger_view& view, std::size_t number)
{
  device_memory there{};
  view.lock().unlock();
  auto const asked = driver_->neighbor_memory(neighbors_[number].which.device_id, there);
  view.lock().lock();
  if (!asked.ok()) {
    count_failure(asked);
    return std::nullopt;
  }
  // The kernel driver hands out what is free before what is kept.
  if (there.free_bytes < reserve_of(there) / sure_to_be_kept) { forget_kept(view, number); }
  return there;
}

/** @brief Takes memory that a neighbour kept for blocks which are not there for its owner's. */
void residency_manager::forget_kept(ledger_view& view, std::size_t number)
{
  if (neighbors_[number].kept_bytes == 0) { return; }
  view.each([&](block_record& block, memory_range) {
    bool const is_there = block.place == block_place::beside && block.neighbor == number;
    if (is_there || !block.has_chunk(number)) { return; }
    block.set_chunk(number, false);
    neighbors_[number].kept_bytes -= va_block_bytes;
  });
}

/**
 * @brief Where blocks leave to now, and how many of them; gives up the lock to ask.
 *
 * The first so many are held there from now on, and on their way: `arrived_beside` ends that.
 * @param[in,out] blocks put in order: those that the neighbour has memory for come first
 */
refuge residency_manager::refuge_for(ledger_view& view, victims& blocks)
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
    victims ordered;
    victims others;
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
    auto const there    = ask_neighbor(view, *number);
    auto const kept     = bytes_of_blocks(static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.begin() + first_other, [&](auto const& each) {
        return each.record->has_chunk(*number);  // still
      })));
    std::size_t granted = 0;
    if (there) {
      // What was given back is the owner's, and with what is free its reserve.
      auto const reserve_bytes = std::min(reserve_of(*there), state.answered_bytes);
      view.lock().unlock();  // a claim may wait for others who claim
      granted = settings_.lender->claim(
        state.which.device_id, wanted, there->free_bytes + kept, reserve_bytes);
      view.lock().lock();
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
      return {location::device(state.which.device_id), *number, granted / va_block_bytes};
    }
  }
  auto const is_busy = [](neighbor_state const& each) { return each.busy; };
  if (std::any_of(neighbors_.begin(), neighbors_.end(), is_busy)) { ++counts_.held_back; }
  return {location::host(), 0, blocks.size()};
}

/** @brief Asks owners, and now and then the driver, which neighbours are better left alone. */
void residency_manager::look_who_is_busy(ledger_view& view) noexcept
{
  auto const now = std::chrono::steady_clock::now();
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const device_id = neighbors_[number].which.device_id;
    auto& watch          = watches_[number];
    if (now - watch.looked >= loads_period) {
      watch.looked = now;
      neighbor_load load;
      view.lock().unlock();  // the first look loads NVML
      auto const told = driver_->read_neighbor_load(device_id, load);
      view.lock().lock();
      // What computes leaves its links and memory to others: only the links count.
      count_unread(told);
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
void residency_manager::takes_nothing(std::size_t number, status why) noexcept
{
  auto& state = neighbors_[number];
  // A device that fails is not asked again; one that is full may have room another time.
  if (why.code != status_code::out_of_memory) { state.given_up = true; }
  state.full_until = std::chrono::steady_clock::now() + settings_.full_period;
}

/** @brief Blocks that were on their way to a neighbour are there, or did not come. */
void residency_manager::arrived_beside(std::size_t number,
                                       victims const& blocks,
                                       status moved) noexcept
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
  if (!holds_beside() && settings_.background) {  // from now on the thread looks after owners
    woken_ = true;
    wanted_.notify_one();
  }
  counts_.harvested_bytes += bytes;
  counts_.peak_harvested_bytes = std::max(counts_.peak_harvested_bytes, counts_.harvested_bytes);
}

/** @brief Blocks that lay on a neighbour do not any more. */
void residency_manager::left_beside(std::size_t number, std::size_t blocks) noexcept
{
  auto& state = neighbors_[number];
  state.held_bytes -= std::min(state.held_bytes, bytes_of_blocks(blocks));
  state.kept_bytes += bytes_of_blocks(blocks);  // until somebody needs it
  counts_.harvested_bytes -= std::min(counts_.harvested_bytes, bytes_of_blocks(blocks));
  settings_.lender->release(state.which.device_id, bytes_of_blocks(blocks));
}

/** @brief Notes what is asked from neighbours: their links carry it for us. */
void residency_manager::count_traffic(claims const& blocks) noexcept
{
  for (auto const& each : blocks) {
    if (each.from == no_neighbor || !each.keeps) { continue; }
    watches_[static_cast<std::size_t>(each.from)].asked.from_bytes += each.range.bytes;
  }
}

/** @brief The same for what came from neighbours. */
void residency_manager::left_beside(claims const& blocks) noexcept
{
  if (!holds_beside()) { return; }
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const came = std::count_if(blocks.begin(), blocks.end(), [number](auto const& each) {
      return each.from == static_cast<int>(number);
    });
    if (came > 0) { left_beside(number, static_cast<std::size_t>(came)); }
  }
}

/**
 * @brief What was to come from neighbours may lie there still: they hold it until it comes.
 *
 * Some of it may have come. That is found when it is used next; to give up what a neighbour still
 * has would let others claim the same memory.
 */
void residency_manager::stayed_beside(claims const& blocks) noexcept
{
  for (auto const& each : blocks) {
    if (each.from == no_neighbor) { continue; }
    each.record->place           = block_place::beside;
    each.record->on_device_as_of = 0;
    each.record->fetched_ahead   = false;
    counts_.resident_bytes -= each.range.bytes;
  }
}

}  // namespace rmm_uvm
