// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace rmm_uvm {

/** @brief Whose turn it is when the process forks, from the first to the last. */
enum class fork_turn : std::uint8_t {
  samplers,    ///< a sample under way ends; it may need what the thread of a budget holds
  gates,       ///< the threads of budgets stand still outside of everything
  descriptors  ///< a child closes its copies of files that speak for its parent
};

/**
 * @brief What has something to do when the process forks.
 *
 * The thread that forks may hold Python's lock, and calls these one after the other. So none of
 * them needs that lock, none throws, and what is waited for is waited for until `end` at most.
 */
class fork_participant {
 public:
  fork_participant()                                   = default;
  fork_participant(fork_participant const&)            = delete;
  fork_participant& operator=(fork_participant const&) = delete;
  fork_participant(fork_participant&&)                 = delete;
  fork_participant& operator=(fork_participant&&)      = delete;

  /** @brief Makes ready. @param end until when it may wait */
  virtual void before_fork(std::chrono::steady_clock::time_point end) noexcept = 0;
  /** @brief Goes on. */
  virtual void after_fork_in_parent() noexcept = 0;
  /** @brief Adapts to a process where only the thread that forked is: the last that it hears. */
  virtual void after_fork_in_child() noexcept = 0;

 protected:
  ~fork_participant() = default;
};

/**
 * @brief Lets somebody hear of the forks of the process, as long as this lives.
 *
 * The last member of its class, so that nobody hears of a fork who is half made or half gone.
 * Making and dropping it wait until a fork under way is over. Thread-safe.
 */
class fork_participation {
 public:
  fork_participation(fork_turn turn, fork_participant& who) noexcept;
  ~fork_participation();
  fork_participation(fork_participation const&)            = delete;
  fork_participation& operator=(fork_participation const&) = delete;
  fork_participation(fork_participation&&)                 = delete;
  fork_participation& operator=(fork_participation&&)      = delete;

 private:
  friend struct fork_handlers;
  fork_turn turn_;
  fork_participant& who_;
  fork_participation* next_{nullptr};
};

struct fork_caller;

/**
 * @brief All that hear of the forks of this process, and how many forks lie behind it.
 *
 * The handlers of `fork` (pthread_atfork) go through the turns. Of each they lock the list, until
 * the fork is over, and tell everyone; afterwards the lists open in reverse order. A fork waits
 * five seconds at most, all together, so that a device that hangs does not hold it up for ever:
 * then the child may find locks taken. `vfork` and `posix_spawn`, after which nothing of the
 * program runs, tell nobody.
 */
struct [[gnu::visibility("default")]] process_forks {
  struct turn {
    std::mutex mutex;
    fork_participation* first{nullptr};
  };
  std::array<turn, 3> turns;
  std::mutex callers_mutex;              ///< of the list below; a fork has it until it is over
  fork_caller* first_caller{nullptr};    ///< every thread that made a `fork_call`, and lives
  std::atomic<unsigned> calls{0};        ///< how a `fork_call` begins: bits of `fork_call::how`
  std::atomic<std::uint64_t> behind{0};  ///< forks between the first process and this one
  std::atomic<bool> watched{false};      ///< the handlers are there
};
// A fork may come after the end of static objects.
static_assert(std::is_trivially_destructible_v<process_forks>);

/**
 * @brief The one of this process.
 *
 * The extensions of the wheel each have a copy of our libraries. Visible, GCC makes it a symbol
 * that is unique in the process. Another compiler may make one for each extension: what has its
 * turn then hears of forks all the same, but extensions follow each other in no fixed order.
 */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it is the process' own
[[gnu::visibility("default")]] inline constinit process_forks forks_of_process;

/**
 * @brief A call of a program into our pools, as long as this lives: a fork waits until it is over.
 *
 * A child has a copy of the locks that other threads hold at the fork, RMM's pool's among them, and
 * none of those threads. So the fork holds off who would begin a call, and waits for those under
 * way. Calls within a call belong to it. The fork comes after samplers and before the gates: a call
 * may wait for the thread of a budget, and none waits for a sampler.
 *
 * A call that waits for Python's lock, in a callback, waits for the thread that forks, and the
 * other way round: then the fork goes on after its five seconds.
 */
class fork_call {
 public:
  /** @brief How calls begin, as bits. */
  enum how : unsigned {
    closed = 1,  ///< a fork is under way: who is outside waits until it is over
    fast   = 2   ///< a fork has all threads' writes seen, so a call needs no order of its own
  };

  fork_call() noexcept;
  ~fork_call();
  fork_call(fork_call const&)            = delete;
  fork_call& operator=(fork_call const&) = delete;
  fork_call(fork_call&&)                 = delete;
  fork_call& operator=(fork_call&&)      = delete;

 private:
  friend struct fork_handlers;
  static void begin_carefully() noexcept;
  static void close(std::chrono::steady_clock::time_point end) noexcept;
  static void open() noexcept;
  static void open_in_child() noexcept;

  // Found without a call; libraries that are loaded late have room for so little.
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit fork_caller* mine_ =
    nullptr;  ///< this thread; null until its first call
};

/** @brief A thread that calls. Its own alone writes `depth`. */
struct fork_caller {
  std::atomic<unsigned> depth{0};  ///< calls within each other
  pthread_t thread{};
  fork_caller* next{nullptr};
};

inline fork_call::fork_call() noexcept
{
  if (mine_ != nullptr) [[likely]] {
    auto& depth       = mine_->depth;
    auto const within = depth.load(std::memory_order_relaxed);
    depth.store(within + 1, std::memory_order_relaxed);
    // No order for the processor: whoever forks has it done on all of them (membarrier).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (within > 0 || forks_of_process.calls.load(std::memory_order_relaxed) == fast) { return; }
  }
  begin_carefully();
}

inline fork_call::~fork_call()
{
  auto& depth = mine_->depth;
  depth.store(depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

}  // namespace rmm_uvm
