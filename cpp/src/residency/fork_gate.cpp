// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/fork_gate.hpp>

#include <pthread.h>

#include <algorithm>
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

void close_all() noexcept
{
  of_process().mutex.lock();  // until they open: none comes or goes over a fork
  for (auto* each : of_process().all) {
    each->close();
  }
}

void open_all(bool child) noexcept
{
  for (auto* each : of_process().all) {
    each->open(child);
  }
  of_process().mutex.unlock();
}

}  // namespace

fork_gate::fork_gate(std::function<void()> call,
                     std::function<void()> in_child,
                     std::chrono::nanoseconds patience)
  : call_{std::move(call)}, in_child_{std::move(in_child)}, patience_{patience}
{
  // In vain only where there is no memory: then forks are as they are without gates.
  [[maybe_unused]] static int const once =
    ::pthread_atfork(close_all, [] { open_all(false); }, [] { open_all(true); });
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

void fork_gate::close() noexcept
{
  constexpr std::chrono::microseconds between_looks{50};
  gate_.lock();
  closed_ = true;
  call_();
  // Looks, and waits for no condition: a child would have a copy of what waits for it.
  auto const end = std::chrono::steady_clock::now() + patience_;
  while (inside_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(between_looks);
  }
}

void fork_gate::open(bool child) noexcept
{
  closed_ = false;
  gate_.unlock();
  if (!child) { return; }
  inside_ = false;  // the thread is not there
  in_child_();
}

}  // namespace rmm_uvm
