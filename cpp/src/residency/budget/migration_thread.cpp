// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/residency/budget/migration_thread.hpp>

#include <utility>

namespace rmm_uvm {

migration_thread::migration_thread(budget_ledger& ledger,
                                   background_work& work,
                                   work_signal& signal,
                                   std::function<void()> in_child)
  : ledger_{ledger},
    work_{work},
    signal_{signal},
    gate_{[this] { signal_.look(); },
          [this, adapt = std::move(in_child)] {
            working_ = false;  // it was, if the fork waited in vain
            adapt();
          }}
{
}

migration_thread::~migration_thread() { stop(); }

void migration_thread::start()
{
  thread_ = own_thread{"rmm_uvm budget", [this] { run(); }};
}

void migration_thread::stop() noexcept
{
  {
    ledger_view const view{ledger_.blocks()};
    stopping_ = true;
  }
  signal_.look();
  if (thread_.joinable()) { thread_.join(); }
}

/** @brief Waits until there may be something to do. @return false when the thread is to end */
bool migration_thread::await_work(work_outcome before)
{
  ledger_view view{ledger_.blocks()};
  working_ = false;
  // The gate closed in the middle of it.
  if (before == work_outcome::again) { signal_.call(); }
  ledger_.tell_change();
  auto const called_away = [this] { return stopping_ || gate_.closed(); };
  for (;;) {
    if (auto const period = work_.look_again_in(before)) {
      signal_.wait_for(view.lock(), *period, called_away);
    } else {
      signal_.wait(view.lock(), called_away);
    }
    if (!gate_.closed()) { break; }
    view.unlock();
    gate_.leave();
    gate_.enter();
    view.relock();
  }
  if (stopping_) { return false; }
  signal_.take();
  working_ = true;
  return true;
}

void migration_thread::run()
{
  auto before = work_outcome::nothing;
  gate_.enter();
  while (await_work(before)) {
    before = work_outcome::again;
    while (before == work_outcome::again) {
      try {
        before = work_.work_once();
      } catch (...) {  // no list of blocks could be made: the next request makes room by itself
        before = work_outcome::nothing;
        ledger_.count_no_memory("migration thread");
      }
      if (gate_.closed() || stopping_) { break; }
    }
  }
  gate_.leave();
}

bool migration_thread::work_here(char const* caller) noexcept
try {
  return work_.work_once() == work_outcome::again;
} catch (...) {
  ledger_.count_no_memory(caller);
  return false;
}

void migration_thread::flush() noexcept
{
  ledger_view view{ledger_.blocks()};
  ledger_.wait_for_change(view, [this] {
    return ledger_.ended() || (!signal_.called() && !working_ && ledger_.leaving_bytes() == 0);
  });
}

}  // namespace rmm_uvm
