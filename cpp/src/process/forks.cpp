// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <pthread.h>

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
      if (&turn == &turn_of(fork_turn::gates)) { forks_of_process.calls_closed = false; }
      turn.mutex.unlock();
    }
  }

  static void after_in_child() noexcept
  {
    forks_of_process.behind.fetch_add(1);
    forks_of_process.calls        = fork_call::depth_ == 0 ? 0 : 1;  // of this thread
    forks_of_process.calls_closed = false;
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

}  // namespace

/** @brief Closes the way into calls, and waits for those of other threads, but not longer. */
void fork_call::close(std::chrono::steady_clock::time_point end) noexcept
{
  forks_of_process.calls_closed = true;
  auto const own                = depth_ == 0 ? 0U : 1U;
  while (forks_of_process.calls > own && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(between_looks);
  }
}

void fork_call::wait_outside() noexcept
{
  do {
    forks_of_process.calls.fetch_sub(1);
    while (forks_of_process.calls_closed) {
      std::this_thread::sleep_for(between_looks);
    }
    forks_of_process.calls.fetch_add(1);
  } while (forks_of_process.calls_closed);
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
