// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/monitor/line_account.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace rmm_uvm::monitor {
namespace {

constexpr std::size_t most_frames = 128;        // of a path: those further out are left out
constexpr std::size_t most_paths  = 1U << 16U;  // what comes after is of nobody's line
constexpr std::uint32_t nobody    = 0;

[[nodiscard]] std::uint64_t hash_of(code_place const& place) noexcept
{
  return mixed(mixed(1, place.contents), place.instruction);
}

[[nodiscard]] std::size_t common_bytes(memory_range one, memory_range other) noexcept
{
  auto const begin = std::max(one.address, other.address);
  auto const end   = std::min(one.end(), other.end());
  return end > begin ? end - begin : 0;
}

void add(moved_bytes& to, std::uint64_t bytes, traffic what) noexcept
{
  switch (what) {
    case traffic::asked:
    case traffic::brought: to.brought += bytes; break;
    case traffic::faulted: to.faulted += bytes; break;
    case traffic::evicted: to.evicted += bytes; break;
    case traffic::read_back: to.read_back += bytes; break;
    case traffic::dropped:
    case traffic::renewed: to.dropped += bytes; break;
  }
}

[[nodiscard]] bool busier(object_account const& one, object_account const& other) noexcept
{
  auto const moved = one.moved.copied();
  auto const less  = other.moved.copied();
  return moved != less ? moved > less : one.number < other.number;
}

/** @brief Keeps the list in order, and no longer than it may be. */
void enter_busy(std::vector<object_account>& busiest, object_account const& object)
{
  if (object.moved.copied() == 0) { return; }
  busiest.insert(std::upper_bound(busiest.begin(), busiest.end(), object, busier), object);
  if (busiest.size() > line_account::most_objects) { busiest.pop_back(); }
}

}  // namespace

void progress::advance(std::uint64_t by) noexcept
{
  bytes += by;
  while (stretch_of(bytes) >= most_stretches) {
    ++shift;
  }
}

void bytes_by_stretch::join(progress const& run) noexcept
{
  for (; shift < run.shift; ++shift) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto const two = 2 * i;
      bytes[i]       = two < bytes.size() ? bytes[two] + bytes[two + 1] : 0;
    }
  }
}

std::uint64_t& bytes_by_stretch::at(std::uint64_t moment, progress const& run) noexcept
{
  join(run);
  return bytes[run.stretch_of(moment)];
}

void line_account::close() noexcept
{
  open_ = false;
  // Who reads frames has this lock.
  std::lock_guard const lock{mutex_};
  for (auto const& [address, each] : std::exchange(pieces_, {})) {
    if (each.object.live) { retire(each.object); }
  }
  decltype(path_of_hash_){}.swap(path_of_hash_);
  decltype(line_of_place_){}.swap(line_of_place_);
}

void line_account::allocated(int, memory_range range, stream_handle) noexcept
{
  if (range.bytes == 0 || !process_.here()) { return; }
  std::lock_guard const lock{mutex_};
  if (!open_) { return; }
  auto path = nobody;
  try {
    path = path_here();
  } catch (std::bad_alloc const&) {
    path = nobody;
  }
  try {
    forget(range);
    piece made{range.bytes, {++allocations_, path, range.bytes, true, {}}, range.bytes};
    made.made = run_.bytes;
    pieces_.insert_or_assign(range.address, made);
  } catch (std::bad_alloc const&) {
    return;  // what moves of it is nobody's
  }
  auto& account = paths_[path];
  account.keep_top(tops_);
  ++account.allocations;
  account.live_bytes += range.bytes;
  account.allocated.at(run_.bytes, run_) += range.bytes;
  account.held.at(run_.bytes, run_) += range.bytes;
  if (account.live_bytes > account.peak_bytes) {
    account.peak_bytes   = account.live_bytes;
    account.held_at_peak = account.held;
  }
  live_bytes_ += range.bytes;
  if (live_bytes_ > peak_bytes_ + peak_bytes_ / 16) {
    peak_bytes_  = live_bytes_;
    peak_moment_ = run_.bytes;
    ++tops_;
  }
  run_.advance(range.bytes);
}

void line_account::freed(int, memory_range range, stream_handle) noexcept
{
  if (!process_.here()) { return; }
  std::lock_guard const lock{mutex_};
  auto const found = pieces_.find(range.address);
  if (!open_ || found == pieces_.end() || !found->second.object.live) { return; }
  auto& object  = found->second.object;
  object.live   = false;
  auto& account = paths_[object.path];
  account.keep_top(tops_);
  account.live_bytes -= std::min(account.live_bytes, object.bytes);
  auto& held = account.held.at(found->second.made, run_);
  held -= std::min(held, object.bytes);
  live_bytes_ -= std::min(live_bytes_, object.bytes);
  retire(object);
}

void line_account::moved(memory_range within, std::size_t bytes, traffic what) noexcept
{
  if (process_.here()) { share_out(within, bytes, true, what); }
}

void line_account::estimated(memory_range seen, std::uint64_t bytes, traffic what) noexcept
{
  if (process_.here() && seen.bytes > 0) { share_out(seen, bytes, false, what); }
}

/** @brief What moved is its owners'. @param exactly it was no more than there is of their memory */
void line_account::share_out(memory_range within,
                             std::uint64_t bytes,
                             bool exactly,
                             traffic what) noexcept
{
  std::lock_guard const lock{mutex_};
  if (!open_) { return; }
  auto first = pieces_.upper_bound(within.address);
  if (first != pieces_.begin()) { --first; }
  auto const last    = pieces_.lower_bound(within.end());
  auto const part_of = [&](auto const& each) {
    return common_bytes(within, {each.first, each.second.bytes});
  };
  std::size_t owned_bytes = 0;
  for (auto each = first; each != last; ++each) {
    owned_bytes += part_of(*each);
  }
  // Which of the pages moved is not told where only some did: then each owner has its share.
  auto rest_bytes = exactly ? std::min<std::uint64_t>(bytes, owned_bytes)
                            : static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) *
                                                         owned_bytes / within.bytes);
  add(paths_[nobody].moved, bytes - rest_bytes, what);
  if (what != traffic::dropped && what != traffic::renewed) { run_.advance(bytes); }
  std::size_t rest_owned = owned_bytes;
  for (auto each = first; each != last && rest_bytes > 0; ++each) {
    auto const part = part_of(*each);
    auto const share =
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(rest_bytes) * part / rest_owned);
    rest_bytes -= share;
    rest_owned -= part;
    if (share > 0) { enter(each->second, share, what); }
  }
}

void line_account::enter(piece& owner, std::uint64_t bytes, traffic what) noexcept
{
  // Which pages these are is not known: of what came, what had left comes first. The rest, but for
  // what was new, had been there before as well, also where nobody was told that it left.
  bool const came     = what == traffic::brought || what == traffic::faulted;
  auto const was_away = came || what == traffic::asked ? std::min(owner.away_bytes, bytes) : 0;
  auto const is_new   = std::min<std::uint64_t>(owner.new_bytes, bytes - was_away);
  auto const returned = came ? bytes - is_new : was_away;
  if (what == traffic::dropped) {
    owner.new_bytes = std::min(owner.bytes, owner.new_bytes + bytes);
  } else {
    owner.new_bytes -= is_new;
  }
  owner.away_bytes -= std::min(owner.away_bytes, returned);
  if (what == traffic::evicted || what == traffic::read_back) { owner.away_bytes += bytes; }
  owner.away_bytes = std::min<std::uint64_t>(owner.away_bytes, owner.bytes - owner.new_bytes);
  if (owner.object.live && (what == traffic::dropped || what == traffic::renewed)) {
    return;  // before it is written: what was there was another's
  }
  if (what == traffic::asked) { bytes -= is_new; }
  for (auto* const moved : {&paths_[owner.object.path].moved, &owner.object.moved}) {
    if (moved == &owner.object.moved && !owner.object.live) { continue; }
    add(*moved, bytes, what);
    moved->returned += returned;
  }
}

/** @brief Addresses are handed out anew: what was there before has lost them. */
void line_account::forget(memory_range range)
{
  auto first = pieces_.upper_bound(range.address);
  if (first != pieces_.begin()) { --first; }
  while (first != pieces_.end() && first->first < range.end()) {
    auto const [address, old] = *first;
    memory_range const had{address, old.bytes};
    if (common_bytes(had, range) == 0) {
      ++first;
      continue;
    }
    if (had.end() > range.end()) {
      auto rest  = old;
      rest.bytes = had.end() - range.end();
      pieces_.insert_or_assign(range.end(), rest);
    }
    if (address < range.address) {
      first->second.bytes = range.address - address;
      ++first;
    } else {
      first = pieces_.erase(first);
    }
  }
}

void line_account::retire(object_account const& object) noexcept
try {
  enter_busy(busiest_, object);
} catch (std::bad_alloc const&) {
  return;  // its path has it all
}

/** @brief The number of the path of this thread; with the lock. */
std::uint32_t line_account::path_here()
{
  auto const state = asked_.thread_state();
  std::array<code_place, most_frames> frames;
  auto const count = read_frames(state, asked_.layout, frames);
  if (count == 0) { return nobody; }
  std::span const read{frames.data(), count};
  std::uint64_t hash = count;
  for (auto const& each : read) {
    hash = mixed(hash, hash_of(each));
  }
  if (auto const found = path_of_hash_.find(hash); found != path_of_hash_.end()) {
    return found->second;
  }
  if (paths_.size() >= most_paths) { return nobody; }
  path_account made;
  for (auto const& each : read) {
    made.lines.push_back(line_of(each));
  }
  paths_.push_back(std::move(made));
  auto const number = static_cast<std::uint32_t>(paths_.size() - 1);
  path_of_hash_.emplace(hash, number);
  return number;
}

std::uint32_t line_account::line_of(code_place const& place)
{
  auto const hash = hash_of(place);
  if (auto const found = line_of_place_.find(hash); found != line_of_place_.end()) {
    return found->second;
  }
  code_line line;
  if (!asked_.describe(place, line)) { line = {}; }
  lines_.push_back(std::move(line));
  auto const number = static_cast<std::uint32_t>(lines_.size() - 1);
  line_of_place_.emplace(hash, number);
  return number;
}

line_report line_account::report() const
{
  std::lock_guard const lock{mutex_};
  line_report told{lines_,
                   paths_,
                   busiest_,
                   run_.stretch_of(run_.bytes),
                   peak_bytes_,
                   run_.stretch_of(peak_moment_)};
  for (auto& path : told.paths) {
    path.keep_top(tops_);
    for (auto* const bytes : {&path.allocated, &path.held_at_peak, &path.held_at_top}) {
      bytes->join(run_);
    }
  }
  for (auto const& [address, each] : pieces_) {
    if (each.object.live) { enter_busy(told.objects, each.object); }
  }
  return told;
}

}  // namespace rmm_uvm::monitor
