// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "forgotten_descriptor.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <type_traits>

namespace rmm_uvm::ipc {

/** @brief What `fork` calls, and all descriptors of this process. */
struct fork_handlers {
  std::mutex mutex;
  forgotten_descriptor* first{nullptr};

  static fork_handlers& instance() noexcept
  {
    static fork_handlers all;
    static auto const registered = ::pthread_atfork(before, after_in_parent, after_in_child);
    static_cast<void>(registered);
    return all;
  }

  static void before() { instance().mutex.lock(); }
  static void after_in_parent() { instance().mutex.unlock(); }
  static void after_in_child()
  {
    auto& all = instance();
    for (auto* each = all.first; each != nullptr; each = each->next_) {
      ::close(each->descriptor_.exchange(-1));
    }
    all.first = nullptr;
    all.mutex.unlock();
  }

  void add(forgotten_descriptor& one) noexcept
  {
    std::lock_guard const guard{mutex};
    one.next_ = first;
    first     = &one;
  }

  void remove(forgotten_descriptor const& one) noexcept
  {
    std::lock_guard const guard{mutex};
    for (auto** link = &first; *link != nullptr; link = &(*link)->next_) {
      if (*link == &one) {
        *link = one.next_;
        break;
      }
    }
  }
};
// A fork may come after the end of static objects.
static_assert(std::is_trivially_destructible_v<fork_handlers>);

forgotten_descriptor::forgotten_descriptor(int descriptor) noexcept : descriptor_{descriptor}
{
  fork_handlers::instance().add(*this);
}

forgotten_descriptor::~forgotten_descriptor()
{
  fork_handlers::instance().remove(*this);
  if (here()) { ::close(get()); }
}

}  // namespace rmm_uvm::ipc
