// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "board_file.hpp"
#include "board_words.hpp"

#include <rmm_uvm/ipc/harvest_board.hpp>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rmm_uvm::ipc {
namespace {

/** @brief Holds the lock under which claims rise, if it comes in time. */
class claims_lock {
 public:
  explicit claims_lock(board_file const& file) noexcept
    : file_{file}, held_{file.lock(harvest_board::patience_ms)}
  {
  }
  ~claims_lock()
  {
    if (held_) { file_.unlock(); }
  }
  claims_lock(claims_lock const&)            = delete;
  claims_lock& operator=(claims_lock const&) = delete;
  claims_lock(claims_lock&&)                 = delete;
  claims_lock& operator=(claims_lock&&)      = delete;

  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  board_file const& file_;
  bool held_;
};

[[nodiscard]] std::size_t rows(board_layout& board) noexcept
{
  return std::min<std::size_t>(load(board.devices), harvest_board::most_devices);
}

[[nodiscard]] std::optional<std::size_t> row_of(board_layout& board,
                                                device_uuid const& device) noexcept
{
  auto const wanted = words_of(device);
  for (std::size_t row = 0; row < rows(board); ++row) {
    auto& words = board.uuids[row];
    if (load(words[0]) == wanted[0] && load(words[1]) == wanted[1]) { return row; }
  }
  return std::nullopt;
}

/** @brief What stands there of a device; asks `counts` of a process only if it says anything. */
template <typename Counts>
[[nodiscard]] harvest_claims agreed(board_layout& board, std::size_t row, Counts const& counts)
{
  harvest_claims found;
  for (std::size_t process = 0; process < harvest_board::most_processes; ++process) {
    auto const offer   = offer_word::of(load(board.offers[row][process]));
    auto const holding = holding_of(load(board.claims[row][process]));
    if (!offer.offers && holding.claimed_bytes == 0) { continue; }
    if (!counts(process)) { continue; }
    found.claimed_bytes += holding.claimed_bytes;
    found.coming_bytes += holding.coming_bytes;
    if (offer.offers) {
      found.offered_bytes =
        found.offered ? std::min(found.offered_bytes, offer.bytes) : offer.bytes;
      found.offered = true;
    }
  }
  return found;
}

constexpr auto everybody = [](std::size_t) noexcept { return true; };

/** @brief Leaves a place as if nobody had had it. */
void clear(board_layout& board, std::size_t process) noexcept
{
  for (std::size_t row = 0; row < harvest_board::most_devices; ++row) {
    std::atomic_ref{board.offers[row][process]}.store(0);
    std::atomic_ref{board.claims[row][process]}.store(0);
    std::atomic_ref{board.wants[row][process]}.store(0);
    std::atomic_ref{board.holds[row][process]}.store(0);
  }
  std::atomic_ref{board.processes[process]}.store(0);
}

/** @brief Takes a free place; the claims are locked, so that nobody else does. */
[[nodiscard]] std::optional<std::size_t> take_place(board_file& file) noexcept
{
  auto& board = file.content();
  std::optional<std::size_t> free_place;
  bool alone = true;
  for (std::size_t process = 0; process < harvest_board::most_processes; ++process) {
    if (file.taken(process)) {
      alone = false;
    } else if (!free_place) {
      free_place = process;
    }
  }
  // The first one begins anew: devices of long ago would take the rows of others.
  if (alone) { std::atomic_ref{board.devices}.store(0); }
  if (!free_place) { return std::nullopt; }
  // Cleared before it is taken: until then it does not count, whatever its last owner left.
  clear(board, *free_place);
  std::atomic_ref{board.processes[*free_place]}.store(static_cast<board_word>(::getpid()));
  if (file.take(*free_place) != 0) { return std::nullopt; }
  return free_place;
}

}  // namespace

harvest_board::harvest_board(std::unique_ptr<board_file> file, std::size_t place) noexcept
  : file_{std::move(file)}, place_{place}
{
}

harvest_board::~harvest_board() = default;

opened_harvest_board harvest_board::open(std::string const& directory)
{
  auto opened = board_file::join(directory);
  if (opened.file == nullptr) { return {nullptr, std::move(opened.reason)}; }
  auto const place = take_place(*opened.file);
  opened.file->unlock();
  if (!place) {
    return {nullptr,
            board_file::path_in(directory) + " is full: " + std::to_string(most_processes) +
              " processes have joined it; this one goes on without"};
  }
  opened_harvest_board joined;
  joined.board.reset(new harvest_board{std::move(opened.file), *place});
  return joined;
}

availability harvest_board::usable() const
{
  if (!file_->here()) {
    return availability::no(
      "this process was forked from the one that joined the board: join it anew");
  }
  if (file_->removed()) {
    return availability::no(
      "the file of the board was removed while in use: programs that start now do not see this "
      "one");
  }
  return availability::yes();
}

std::optional<std::size_t> harvest_board::find(device_uuid const& device) const noexcept
{
  return file_->here() ? row_of(file_->content(), device) : std::nullopt;
}

/** @pre the claims are locked */
std::optional<std::size_t> harvest_board::find_or_add(device_uuid const& device) noexcept
{
  if (auto const row = find(device)) { return row; }
  auto& board    = file_->content();
  auto const row = rows(board);
  if (row == most_devices) { return std::nullopt; }
  auto const words = words_of(device);
  std::atomic_ref{board.uuids[row][0]}.store(words[0]);
  std::atomic_ref{board.uuids[row][1]}.store(words[1]);
  std::atomic_ref{board.devices}.store(row + 1);  // only now it is there
  return row;
}

bool harvest_board::joined(std::size_t process) const noexcept
{
  return process == place_ || file_->taken(process);
}

/**
 * @brief Clears what those say that ended, so that readers need not ask after them.
 * @pre the claims are locked: a place that is free stays so
 */
void harvest_board::forget_the_gone(std::size_t device) noexcept
{
  auto& board = file_->content();
  for (std::size_t process = 0; process < most_processes; ++process) {
    auto& offer = board.offers[device][process];
    auto& claim = board.claims[device][process];
    auto& wants = board.wants[device][process];
    if ((load(offer) | load(claim) | load(wants)) != 0 && !joined(process)) {
      std::atomic_ref{offer}.store(0);
      std::atomic_ref{claim}.store(0);
      std::atomic_ref{wants}.store(0);
    }
  }
}

// The owner's side

/** @brief The row of a device, made where there is none; none where nobody would see it. */
std::optional<std::size_t> harvest_board::row_to_write(device_uuid const& device) noexcept
{
  if (!file_->here() || file_->removed()) { return std::nullopt; }
  if (auto const row = find(device)) { return row; }
  std::lock_guard const guard{mutex_};
  claims_lock const lock{*file_};
  return lock.held() ? find_or_add(device) : std::nullopt;
}

template <typename Change>
bool harvest_board::change_offer(device_uuid const& device, Change const& change) noexcept
{
  auto const row = row_to_write(device);
  if (!row) { return false; }
  update(file_->content().offers[*row][place_],
         [&](board_word before) { return change(offer_word::of(before)).word(); });
  return true;
}

bool harvest_board::offer(device_uuid const& device, std::size_t bytes) noexcept
{
  return change_offer(device,
                      [&](offer_word before) { return offer_word{true, before.busy, bytes}; });
}

void harvest_board::withdraw(device_uuid const& device) noexcept
{
  if (!find(device)) { return; }
  change_offer(device, [](offer_word before) { return offer_word{false, before.busy, 0}; });
}

bool harvest_board::set_busy(device_uuid const& device, bool busy_now) noexcept
{
  if (!busy_now && !find(device)) { return file_->here(); }
  return change_offer(
    device, [&](offer_word before) { return offer_word{before.offers, busy_now, before.bytes}; });
}

std::size_t harvest_board::claimed_by_others(device_uuid const& device) const noexcept
{
  auto const row = find(device);
  if (!row) { return 0; }
  auto& board       = file_->content();
  std::size_t bytes = 0;
  for (std::size_t process = 0; process < most_processes; ++process) {
    auto const claimed = holding_of(load(board.claims[*row][process])).claimed_bytes;
    if (claimed != 0 && process != place_ && joined(process)) { bytes += claimed; }
  }
  return bytes;
}

// Budgets of one device

bool harvest_board::share(device_uuid const& device, budget_share const& mine) noexcept
{
  auto const row = row_to_write(device);
  if (!row) { return false; }
  auto const words = share_words::of(mine);
  std::atomic_ref{file_->content().holds[*row][place_]}.store(words.holds);
  std::atomic_ref{file_->content().wants[*row][place_]}.store(words.wants);
  return true;
}

void harvest_board::end_share(device_uuid const& device) noexcept
{
  if (auto const row = find(device)) {
    std::atomic_ref{file_->content().wants[*row][place_]}.store(0);
    std::atomic_ref{file_->content().holds[*row][place_]}.store(0);
  }
}

std::size_t harvest_board::shares_of_others(device_uuid const& device,
                                            std::span<budget_share> found) const noexcept
{
  auto const row = find(device);
  if (!row) { return 0; }
  auto& board       = file_->content();
  std::size_t count = 0;
  for (std::size_t process = 0; process < most_processes && count < found.size(); ++process) {
    share_words const words{load(board.wants[*row][process]), load(board.holds[*row][process])};
    if (words.shares() && process != place_ && joined(process)) { found[count++] = words.share(); }
  }
  return count;
}

// The harvester's side

std::size_t harvest_board::claim(device_uuid const& device,
                                 std::size_t bytes,
                                 std::size_t free_bytes,
                                 std::size_t reserve_bytes) noexcept
{
  if (bytes < va_block_bytes || !file_->here()) { return 0; }
  std::lock_guard const guard{mutex_};
  claims_lock const lock{*file_};
  if (!lock.held() || file_->removed()) { return 0; }
  auto const row = find_or_add(device);
  if (!row) { return 0; }
  forget_the_gone(*row);
  auto& mine         = file_->content().claims[*row][place_];
  auto const most    = bytes_of(most_blocks) - holding_of(load(mine)).claimed_bytes;
  auto const now     = agreed(file_->content(), *row, everybody);
  auto const granted = granted_bytes(std::min(bytes, most), now, free_bytes, reserve_bytes);
  update(mine, [&](board_word before) { return word_of(holding_of(before).claimed(granted)); });
  // An owner lowers its offer and then looks at claims; here the claim stands, and the offer is
  // looked at again: one of the two sees the other.
  auto const too_much =
    std::min(granted, excess_bytes(agreed(file_->content(), *row, everybody), 0));
  update(mine, [&](board_word before) { return word_of(holding_of(before).cancelled(too_much)); });
  return granted - too_much;
}

template <typename Change>
void harvest_board::change_holding(device_uuid const& device, Change const& change) noexcept
{
  auto const row = find(device);
  if (!row) { return; }
  update(file_->content().claims[*row][place_],
         [&](board_word before) { return word_of(change(holding_of(before))); });
}

void harvest_board::placed(device_uuid const& device, std::size_t bytes) noexcept
{
  change_holding(device, [&](harvest_holding before) { return before.placed(bytes); });
}

void harvest_board::cancel(device_uuid const& device, std::size_t bytes) noexcept
{
  change_holding(device, [&](harvest_holding before) { return before.cancelled(bytes); });
}

void harvest_board::release(device_uuid const& device, std::size_t bytes) noexcept
{
  change_holding(device, [&](harvest_holding before) { return before.released(bytes); });
}

std::size_t harvest_board::held(device_uuid const& device) const noexcept
{
  auto const row = find(device);
  return row ? holding_of(load(file_->content().claims[*row][place_])).claimed_bytes : 0;
}

std::size_t harvest_board::excess(device_uuid const& device,
                                  std::size_t shortage_bytes) const noexcept
{
  auto const row  = find(device);
  auto const mine = held(device);
  if (!row || mine == 0) { return 0; }
  auto& board = file_->content();
  // Entries of processes that ended can only add to it: without it, nobody needs to be asked for.
  if (excess_bytes(agreed(board, *row, everybody), shortage_bytes) == 0) { return 0; }
  auto const now =
    agreed(board, *row, [this](std::size_t process) noexcept { return joined(process); });
  return give_back_bytes(mine, now.claimed_bytes, excess_bytes(now, shortage_bytes));
}

bool harvest_board::busy(device_uuid const& device) const noexcept
{
  auto const row = find(device);
  if (!row) { return false; }
  auto& offers = file_->content().offers[*row];
  for (std::size_t process = 0; process < most_processes; ++process) {
    if (offer_word::of(load(offers[process])).busy && process != place_ && joined(process)) {
      return true;
    }
  }
  return false;
}

// What people see

harvest_view harvest_board::look(std::string const& directory)
{
  auto opened = board_file::look(directory);
  harvest_view view;
  view.path = board_file::path_in(directory);
  if (opened.file == nullptr) {
    view.readable = availability::no(std::move(opened.reason));
    return view;
  }
  auto& board = opened.file->content();
  for (std::size_t process = 0; process < most_processes; ++process) {
    if (!opened.file->taken(process)) { continue; }
    auto const id = static_cast<std::uint32_t>(load(board.processes[process]));
    view.processes.push_back(id);
    for (std::size_t row = 0; row < rows(board); ++row) {
      auto const offer   = offer_word::of(load(board.offers[row][process]));
      auto const holding = holding_of(load(board.claims[row][process]));
      if (!offer.offers && !offer.busy && holding.claimed_bytes == 0) { continue; }
      std::array<board_word, 2> const words{load(board.uuids[row][0]), load(board.uuids[row][1])};
      view.entries.push_back(
        {id, std::bit_cast<device_uuid>(words), offer.offers, offer.busy, offer.bytes, holding});
    }
  }
  return view;
}

}  // namespace rmm_uvm::ipc
