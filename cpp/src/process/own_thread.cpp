// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/process/own_thread.hpp>

#include <pthread.h>

#include <utility>

namespace rmm_uvm {

signals_blocked::signals_blocked() noexcept
{
  sigset_t all;
  ::sigfillset(&all);
  for (auto const of_this_thread : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
    ::sigdelset(&all, of_this_thread);
  }
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

signals_blocked::~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void name_this_thread(char const* name) noexcept { ::pthread_setname_np(::pthread_self(), name); }

own_thread::own_thread(char const* name, std::function<void()> work)
{
  signals_blocked const blocked;
  thread_ = std::thread{[name, work = std::move(work)] {
    name_this_thread(name);  // also here: it may run before the line below
    work();
  }};
  ::pthread_setname_np(thread_.native_handle(), name);
}

}  // namespace rmm_uvm
