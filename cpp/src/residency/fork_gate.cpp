// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/fork_gate.hpp>

#include <pthread.h>

#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm {
namespace {

/** @brief The gates of this process. */
struct gates {
  std::mutex mutex;
  std::vector<fork_gate*> all;
};

/** @brief Never destroyed: a process may fork while it exits. */
[[nodiscard]] gates& of_process()
{
  static auto* const ours = new gates;  // NOLINT(cppcoreguidelines-owning-memory): see above
  return *ours;
}

void before_fork() noexcept
{
  of_process().mutex.lock();  // until they open: none comes or goes over a fork
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  for (auto* each : of_process().all) {
    each->close(end);
  }
}

void after_in_parent() noexcept
{
  for (auto* each : of_process().all) {
    each->open();
  }
  of_process().mutex.unlock();
}

void after_in_child() noexcept
{
  for (auto* each : of_process().all) {
    each->open_in_child();
  }
  of_process().all.clear();  // no thread is in them, and what they belong to may go without them
  of_process().mutex.unlock();
}

}  // namespace

fork_gate::fork_gate(std::function<void()> call, std::function<void()> in_child)
  : call_{std::move(call)}, in_child_{std::move(in_child)}
{
  // In vain only where there is no memory: then forks are as they are without gates.
  [[maybe_unused]] static int const once =
    ::pthread_atfork(before_fork, after_in_parent, after_in_child);
  std::lock_guard const lock{of_process().mutex};
  of_process().all.push_back(this);
}

fork_gate::~fork_gate()
{
  std::lock_guard const lock{of_process().mutex};
  std::erase(of_process().all, this);
}

void fork_gate::enter() noexcept
{
  std::lock_guard const lock{gate_};
  inside_ = true;
}

void fork_gate::close(std::chrono::steady_clock::time_point end) noexcept
{
  constexpr std::chrono::microseconds between_looks{50};
  gate_.lock();
  closed_ = true;
  // Looks, and waits for no condition: a child would have a copy of what waits for it. And calls
  // again: the thread may have been about to wait.
  while (inside_ && std::chrono::steady_clock::now() < end) {
    call_();
    std::this_thread::sleep_for(between_looks);
  }
}

void fork_gate::open() noexcept
{
  closed_ = false;
  gate_.unlock();
}

void fork_gate::open_in_child() noexcept
{
  open();
  in_child_();
}

}  // namespace rmm_uvm
