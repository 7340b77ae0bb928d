// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/fork_gate.hpp>

#include <thread>
#include <utility>

namespace rmm_uvm {

fork_gate::fork_gate(std::function<void()> call, std::function<void()> in_child)
  : call_{std::move(call)}, in_child_{std::move(in_child)}
{
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

void fork_gate::after_fork_in_child() noexcept
{
  open();
  in_child_();
}

}  // namespace rmm_uvm
