// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
// What lies on other devices: who takes it, and how it goes back when its owner needs the memory.
#include <rmm_uvm/residency/free_memory_lender.hpp>
#include <rmm_uvm/residency/neighbor_busy.hpp>
#include <rmm_uvm/residency/residency_manager.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace rmm_uvm {
namespace {

constexpr std::size_t pieces_given_back = 4;  // that leave together: nobody's launch waits for them
constexpr std::size_t offer_reserve     = 16;  // a 16th of the budget is never offered: a program
                                               // that grows by little waits for nobody
constexpr std::chrono::microseconds reclaim_period{100};
constexpr std::chrono::milliseconds full_period{100};
constexpr std::chrono::milliseconds loads_period{20};  // NVML's own figures are of such times
// Of a link's rate: half of it leaves our copies half of it. A choice, not measured.
constexpr busy_thresholds links_busy{0.5, 0.25};
constexpr std::chrono::milliseconds longest_reclaim{500};

/** @brief So many blocks, in bytes: neighbours are held block by block. */
[[nodiscard]] std::size_t whole(std::size_t blocks) noexcept { return blocks * va_block_bytes; }

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
  offer_idle();
}

/** @brief A neighbour's free memory; gives up the lock to ask. */
std::optional<device_memory> residency_manager::ask_neighbor(ledger_view& view, int device_id)
{
  device_memory there{};
  view.lock().unlock();
  auto const asked = driver_->neighbor_memory(device_id, there);
  view.lock().lock();
  if (asked.ok()) { return there; }
  count_failure(asked);
  return std::nullopt;
}

/**
 * @brief Where blocks leave to now, and how many of them; gives up the lock to ask.
 *
 * The first so many are held there from now on, and on their way: `arrived_beside` ends that.
 * @param[in,out] blocks put in order: those that the neighbour has memory for come first
 */
residency_manager::refuge residency_manager::refuge_for(ledger_view& view, victims& blocks)
{
  unsigned passed_over = 0;
  look_who_is_busy(view);
  auto seen = neighbors_;
  for (auto const& each : blocks) {  // what is kept for these is room for these
    if (each.record->chunk_beside) { seen[each.record->neighbor].kept_bytes -= va_block_bytes; }
  }
  while (auto const number = choose_neighbor(seen, passed_over)) {
    passed_over |= 1U << *number;
    auto& state = neighbors_[*number];
    victims ordered;
    victims others;
    for (auto const& each : blocks) {
      bool const has_chunk = each.record->chunk_beside && each.record->neighbor == *number;
      (has_chunk ? ordered : others).push_back(each);
    }
    auto const kept = whole(ordered.size());
    ordered.insert(ordered.end(), others.begin(), others.end());
    blocks            = std::move(ordered);
    auto const wanted = std::min(whole(blocks.size()), va_block_floor(seen[*number].room_bytes()));
    state.held_bytes += wanted;  // nobody else takes the same room meanwhile
    state.moving_bytes += wanted;
    auto const there    = ask_neighbor(view, state.which.device_id);
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
    // What is kept there for these is granted as long as anything is: the rest tells of new room.
    if (granted < whole(blocks.size())) {
      state.full = true;
    } else if (granted > kept) {
      state.full = false;
    }
    if (granted > 0) {
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
  auto const now         = std::chrono::steady_clock::now();
  auto const moved_bytes = counts_.neighbor_bytes + counts_.from_neighbor_bytes;
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const device_id = neighbors_[number].which.device_id;
    auto& watch          = watches_[number];
    if (now - watch.looked >= loads_period) {
      watch.looked = now;
      neighbor_load load;
      bool const ours = moved_bytes != std::exchange(watch.moved_bytes, moved_bytes);
      view.lock().unlock();  // the first look loads NVML
      auto const told = driver_->read_neighbor_load(device_id, load);
      view.lock().lock();
      if (told.ok() && !ours) {
        load.kernel_fraction.reset();  // what computes leaves its links and memory to others
        watch.loads.at(watch.count++ % watch.loads.size()) = load;
        if (watch.count >= watch.loads.size()) {
          watch.busy = is_busy(watch.loads, links_busy, watch.busy);
        }
      }
    }
    bool const full         = now < neighbors_[number].full_until;
    neighbors_[number].busy = full || watch.busy || settings_.lender->busy(device_id);
  }
}

/** @brief Blocks that were on their way to a neighbour are there, or did not come. */
void residency_manager::arrived_beside(std::size_t number,
                                       victims const& blocks,
                                       status moved) noexcept
{
  auto& state      = neighbors_[number];
  auto const bytes = whole(blocks.size());
  state.moving_bytes -= bytes;
  if (!moved.ok()) {
    state.held_bytes -= bytes;
    settings_.lender->cancel(state.which.device_id, bytes);
    // A device that fails is not asked again; one that is full may have room another time.
    if (moved.code != status_code::out_of_memory) { state.given_up = true; }
    state.full_until = std::chrono::steady_clock::now() + full_period;
    return;
  }
  for (auto const& each : blocks) {
    auto& block = *each.record;
    if (block.chunk_beside) { neighbors_[block.neighbor].kept_bytes -= va_block_bytes; }
    block.neighbor     = static_cast<std::uint8_t>(number) & 0x7U;
    block.chunk_beside = true;
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
  state.held_bytes -= std::min(state.held_bytes, whole(blocks));
  state.kept_bytes += whole(blocks);  // until somebody needs it
  counts_.harvested_bytes -= std::min(counts_.harvested_bytes, whole(blocks));
  settings_.lender->release(state.which.device_id, whole(blocks));
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

/** @brief How much a neighbour's owner wants back; gives up the lock to ask. */
std::size_t residency_manager::wanted_back(ledger_view& view, std::size_t number)
{
  auto const held_bytes = neighbors_[number].held_bytes;
  if (held_bytes == 0) { return 0; }
  auto const device_id = neighbors_[number].which.device_id;
  // Owners that lend say how much; of others the driver tells what they have left.
  std::size_t shortage_bytes = 0;
  if (auto const there = ask_neighbor(view, device_id)) {
    shortage_bytes = missing_reserve(neighbors_[number], there->free_bytes, reserve_of(*there));
  }
  return std::min(settings_.lender->excess(device_id, shortage_bytes), held_bytes);
}

/** @brief Has some of what a neighbour's owner wants back leave it. */
residency_manager::outcome residency_manager::give_back(ledger_view& view)
{
  for (std::size_t number = 0; number < neighbors_.size(); ++number) {
    auto const wanted = wanted_back(view, number);
    if (wanted > 0 && leave_neighbor(view, number, wanted)) { return outcome::again; }
  }
  return outcome::nothing;
}

/**
 * @brief Has blocks leave a neighbour: dead ones, then copied ones, which need no copy, then
 * others.
 *
 * They go to the host, in long pieces. What is used last goes first.
 * @return whether any left
 */
bool residency_manager::leave_neighbor(ledger_view& view, std::size_t number, std::size_t bytes)
{
  struct candidate {
    std::uint64_t key;
    viewed_block block;
  };
  std::array<std::vector<candidate>, 3> found;  // by `departure_kind`
  bool const foresees = prediction_.on();
  view.each([&](block_record& block, memory_range range) {
    if (block.place != block_place::beside || block.neighbor != number || !block.movable()) {
      return;
    }
    auto kind = block.copied ? departure_kind::has_copy : departure_kind::copied_now;
    if (block.dead() && !block.unfenced && settings_.drops() && driver_->info().discard.available) {
      kind = departure_kind::dropped;
    }
    auto const key = leaving_key(settings_.policy, block, now_, foresees);
    found[static_cast<std::size_t>(kind)].push_back({key, {&block, range}});
  });
  std::size_t kind = 0;
  while (kind < found.size() && found.at(kind).empty()) {
    ++kind;
  }
  if (kind == found.size()) { return false; }
  auto& these      = found.at(kind);
  auto const most  = std::min(bytes, pieces_given_back * settings_.piece_bytes);
  auto const count = std::min(these.size(), (most + va_block_bytes - 1) / va_block_bytes);
  std::partial_sort(these.begin(),
                    these.begin() + static_cast<std::ptrdiff_t>(count),
                    these.end(),
                    [](candidate const& a, candidate const& b) { return a.key > b.key; });
  victims going;
  for (std::size_t each = 0; each < count; ++each) {
    going.push_back(these[each].block);
  }
  return go_back(view, number, going, static_cast<departure_kind>(kind));
}

/** @brief Has blocks of a neighbour go. @return whether they went */
bool residency_manager::go_back(ledger_view& view,
                                std::size_t number,
                                victims const& blocks,
                                departure_kind kind)
{
  auto const drops  = kind == departure_kind::dropped;
  auto const ranges = joined(view, blocks, settings_.fetch_bytes);
  victims mapped;
  victims doubled;
  for (auto const& each : blocks) {
    if (each.record->in_place) { mapped.push_back(each); }
    if (each.record->copied) { doubled.push_back(each); }
  }
  auto const mapped_ranges  = joined(view, mapped, ~std::size_t{0});
  auto const doubled_ranges = joined(view, doubled, ~std::size_t{0});
  bool done                 = true;
  for (auto const& each : blocks) {  // from here on nothing takes memory
    each.record->busy      = true;
    each.record->discarded = each.record->discarded || drops;
    done                   = done && free_is_done(*each.record);
  }
  sent_away_.store(true, std::memory_order_release);
  view.lock().unlock();
  status result;
  if (drops) { result = discard_now(ranges, done); }
  // What has a copy on the host is there then; of what was dropped the advice ends.
  if (result.ok()) { result = leave_one_copy(doubled_ranges, location::host()); }
  if (result.ok() && kind == departure_kind::copied_now) { result = to_host_now(ranges); }
  auto const unmapped = end_in_place(mapped_ranges);
  view.lock().lock();
  if (!unmapped.ok()) { count_failure(unmapped); }
  for (auto const& each : blocks) {
    each.record->busy = false;
    if (!result.ok()) { continue; }
    each.record->place        = drops ? block_place::nowhere : block_place::host;
    each.record->chunk_beside = false;  // its owner has it
    each.record->in_place     = false;
    each.record->copied       = false;
    if (!drops) { faulted_in_.to_host(each.range.bytes); }
    counts_.given_back_bytes += each.range.bytes;
    if (kind != departure_kind::copied_now) {
      counts_.given_back_at_once_bytes += each.range.bytes;
    }
  }
  if (result.ok()) {
    left_beside(number, blocks.size());
    neighbors_[number].kept_bytes -= whole(blocks.size());
    auto& answered = neighbors_[number].answered_bytes;
    answered -= std::min(answered, whole(blocks.size()));
  } else {
    count_failure(result);
  }
  changed_.notify_all();
  return result.ok();
}

/** @brief Moves ranges to the host, and returns when they have arrived. */
status residency_manager::to_host_now(range_list ranges) noexcept
{
  stream_handle evictions = nullptr;
  auto result             = driver_->own_stream(own_stream_use::evictions, evictions);
  if (!result.ok()) { return result; }
  if (adviser_ != nullptr && adviser_->advised_bytes() > 0) {
    result = adviser_->to_host(ranges, evictions, moves_directly(location::host())).moved;
  } else {
    std::atomic<std::size_t> moved_bytes{0};
    result = move_all(ranges, location::host(), evictions, moved_bytes);
  }
  // A prefetch returns before it is done, and only then the owner has its memory.
  return result.ok() ? driver_->synchronize(evictions) : result;
}

/** @brief Tells others how much of this device they may hold: what the budget has left. */
void residency_manager::offer_idle() noexcept
{
  if (!settings_.lends) { return; }
  auto const kept_bytes = counts_.resident_bytes + settings_.budget_bytes / offer_reserve;
  auto const offered =
    va_block_floor(settings_.budget_bytes - std::min(settings_.budget_bytes, kept_bytes));
  if (offered == offered_bytes_) { return; }
  if (settings_.lender->offer(driver_->info().device_id, offered)) { offered_bytes_ = offered; }
}

/**
 * @brief Waits until others have left what this program is about to use, but not for long.
 *
 * Its own need comes first: the offer is lowered already. Where they do not leave in time the
 * kernel driver makes room, and nothing is lost.
 */
void residency_manager::await_others(ledger_view& view) noexcept
{
  if (!settings_.lends) { return; }
  offer_idle();
  auto const device_id = driver_->info().device_id;
  auto const idle_bytes =
    settings_.budget_bytes - std::min(settings_.budget_bytes, counts_.resident_bytes);
  auto const held_bytes = settings_.lender->claimed_by_others(device_id);
  if (held_bytes <= idle_bytes) { return; }
  if (held_bytes >= kept_by_others_) { return; }  // they did not leave for the last request
  ++counts_.reclaims;
  view.lock().unlock();
  auto const begun = std::chrono::steady_clock::now();
  auto waited      = std::chrono::steady_clock::duration::zero();
  while (settings_.lender->claimed_by_others(device_id) > idle_bytes && waited < longest_reclaim) {
    std::this_thread::sleep_for(reclaim_period);
    waited = std::chrono::steady_clock::now() - begun;
  }
  auto const left_bytes = settings_.lender->claimed_by_others(device_id);
  view.lock().lock();
  kept_by_others_ = left_bytes > idle_bytes ? left_bytes : ~std::size_t{0};
  counts_.reclaim_wait_ns += static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
}

}  // namespace rmm_uvm
