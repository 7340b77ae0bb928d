// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <ranges>
#include <thread>

namespace rmm_uvm {
namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::chrono::microseconds between_looks{50};

[[nodiscard]] process_forks::turn& turn_of(fork_turn which) noexcept
{
  return forks_of_process.turns[static_cast<std::size_t>(which)];
}

}  // namespace

/** @brief What `fork` calls. */
struct fork_handlers {
  static void before() noexcept
  {
    auto const end = std::chrono::steady_clock::now() + patience;
    for (auto& turn : forks_of_process.turns) {
      if (&turn == &turn_of(fork_turn::gates)) { fork_call::close(end); }
      turn.mutex.lock();  // until it is over: none comes or goes over a fork
      for (auto* each = turn.first; each != nullptr; each = each->next_) {
        each->who_.before_fork(end);
      }
    }
  }

  static void after_in_parent() noexcept
  {
    for (auto& turn : std::views::reverse(forks_of_process.turns)) {
      for (auto* each = turn.first; each != nullptr; each = each->next_) {
        each->who_.after_fork_in_parent();
      }
      turn.mutex.unlock();
      if (&turn == &turn_of(fork_turn::gates)) { fork_call::open(); }
    }
  }

  static void after_in_child() noexcept
  {
    forks_of_process.behind.fetch_add(1);
    fork_call::open_in_child();
    for (auto& turn : std::views::reverse(forks_of_process.turns)) {
      for (auto* each = turn.first; each != nullptr; each = each->next_) {
        each->who_.after_fork_in_child();
      }
      turn.first = nullptr;  // what they belong to may go without them
      turn.mutex.unlock();
    }
  }
};

namespace {

// When the first library that has this is loaded: nothing of ours runs yet. It fails only where
// there is no memory: then forks are as they are without it.
[[maybe_unused]] bool const watched =
  forks_of_process.watched.exchange(true) ||
  ::pthread_atfork(
    fork_handlers::before, fork_handlers::after_in_parent, fork_handlers::after_in_child) == 0;

/** @brief Has all threads of the process see what was written before. @return whether it can */
[[nodiscard]] bool let_all_see(int command) noexcept
{
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

/** @brief Takes a thread off the list when it ends. */
struct last_call {
  explicit last_call(fork_caller*& mine) noexcept : here{mine} {}
  last_call(last_call const&)            = delete;
  last_call& operator=(last_call const&) = delete;
  last_call(last_call&&)                 = delete;
  last_call& operator=(last_call&&)      = delete;
  ~last_call()
  {
    std::lock_guard const lock{forks_of_process.callers_mutex};
    auto** link = &forks_of_process.first_caller;
    while (*link != nullptr && *link != caller.get()) {
      link = &(*link)->next;
    }
    if (*link != nullptr) { *link = caller->next; }
    here = &nobody;  // what is freed after this is counted nowhere
  }
  std::unique_ptr<fork_caller> caller;
  fork_caller*& here;
  static inline fork_caller nobody;
};

/** @brief Puts this thread on the list. */
void enlist(fork_caller*& here) noexcept
try {
  thread_local last_call mine{here};
  mine.caller         = std::make_unique<fork_caller>();
  mine.caller->thread = ::pthread_self();
  std::lock_guard const lock{forks_of_process.callers_mutex};
  auto& forks = forks_of_process;
  if (forks.first_caller == nullptr && let_all_see(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
    forks.calls.fetch_or(fork_call::fast);
  }
  mine.caller->next  = forks.first_caller;
  forks.first_caller = mine.caller.get();
  here               = mine.caller.get();
} catch (...) {  // no memory: its calls are not waited for
  here = &last_call::nobody;
}

}  // namespace

void fork_call::begin_carefully() noexcept
{
  if (mine_ == nullptr) { enlist(mine_); }
  auto& depth = mine_->depth;
  while (true) {
    depth.store(1);  // in one order with what the fork writes and reads
    if ((forks_of_process.calls.load() & closed) == 0) { return; }
    depth.store(0);
    while ((forks_of_process.calls.load() & closed) != 0) {
      std::this_thread::sleep_for(between_looks);
    }
  }
}

/** @brief Closes the way into calls, and waits for those of other threads, but not longer. */
void fork_call::close(std::chrono::steady_clock::time_point end) noexcept
{
  auto& forks = forks_of_process;
  forks.callers_mutex.lock();  // until it is over
  auto const how = forks.calls.fetch_or(closed);
  if ((how & fast) != 0 && !let_all_see(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
      let_all_see(
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {  // a child of another fork may need it
    static_cast<void>(let_all_see(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
  }
  for (auto* each = forks.first_caller; each != nullptr; each = each->next) {
    if (::pthread_equal(each->thread, ::pthread_self()) != 0) { continue; }
    while (each->depth.load() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(between_looks);
    }
  }
}

void fork_call::open() noexcept
{
  forks_of_process.calls.fetch_and(~unsigned{closed});
  forks_of_process.callers_mutex.unlock();
}

/** @brief Of all threads there is this one. */
void fork_call::open_in_child() noexcept
{
  auto** link = &forks_of_process.first_caller;
  while (*link != nullptr) {
    if (::pthread_equal((*link)->thread, ::pthread_self()) != 0) {
      link = &(*link)->next;
    } else {
      *link = (*link)->next;  // its memory goes with nobody
    }
  }
  open();
}

fork_participation::fork_participation(fork_turn turn, fork_participant& who) noexcept
  : turn_{turn}, who_{who}
{
  auto& others = turn_of(turn_);
  std::lock_guard const lock{others.mutex};
  next_        = others.first;
  others.first = this;
}

fork_participation::~fork_participation()
{
  auto& others = turn_of(turn_);
  std::lock_guard const lock{others.mutex};
  for (auto** link = &others.first; *link != nullptr; link = &(*link)->next_) {
    if (*link == this) {
      *link = next_;
      break;
    }
  }
}

process_mark::process_mark() noexcept : made_after_{forks_of_process.behind.load()} {}

}  // namespace rmm_uvm
