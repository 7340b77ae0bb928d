// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace rmm_uvm {

/**
 * @brief Blocks all signals, as long as this lives, for the calling thread and those that it
 * begins; but for those of a crash.
 *
 * A program's handlers never run on a thread of ours. Python's main thread has to get its signals,
 * too, or a Ctrl-C would not wake it. A crash is reported where it is, by faulthandler for example:
 * `abort` lets its own signal through by itself, and one from outside is the program's.
 */
class signals_blocked {
 public:
  signals_blocked() noexcept;
  ~signals_blocked();
  signals_blocked(signals_blocked const&)            = delete;
  signals_blocked& operator=(signals_blocked const&) = delete;
  signals_blocked(signals_blocked&&)                 = delete;
  signals_blocked& operator=(signals_blocked&&)      = delete;

 private:
  sigset_t before_{};
};

/** @brief Names the calling thread, as `top -H` and debuggers show it. @param name at most 15 bytes
 */
void name_this_thread(char const* name) noexcept;

/**
 * @brief A thread of ours: no signal is handled on it, and it has a name.
 *
 * Whoever has one joins it. All threads of the package begin here, or in Python with `OwnThread`.
 */
class own_thread {
 public:
  /** @brief No thread. */
  own_thread() noexcept = default;
  /**
   * @param name a literal of at most 15 bytes; the thread has it from the first moment on
   * @throws std::system_error, std::bad_alloc if there can be no more threads
   */
  own_thread(char const* name, std::function<void()> work);

  [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }
  /** @brief Leaves it to itself: one that does not come back from its device. */
  void detach() { thread_.detach(); }

 private:
  std::thread thread_;
};

}  // namespace rmm_uvm
