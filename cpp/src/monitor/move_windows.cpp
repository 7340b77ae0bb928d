// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/driver/migration_counters.hpp>
#include <rmm_uvm/monitor/move_windows.hpp>
#include <rmm_uvm/monitor/steady_clock.hpp>
#include <rmm_uvm/process/forks.hpp>
#include <rmm_uvm/process/own_thread.hpp>
#include <rmm_uvm/process/process_mark.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace rmm_uvm::monitor {
namespace {

[[nodiscard]] std::uint64_t scaled(std::uint64_t bytes, std::uint64_t by, std::uint64_t of) noexcept
{
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * by / of);
}

[[nodiscard]] bool was_asked_for(seen_move const& move) noexcept
{
  return move.cause == migration_cause::user || move.cause == migration_cause::unknown;
}

[[nodiscard]] traffic traffic_of(seen_move const& move) noexcept
{
  if (move.to_device) { return traffic::faulted; }
  return move.cause == migration_cause::eviction ? traffic::evicted : traffic::read_back;
}

}  // namespace

/** @brief What the windows and their thread share: both keep it, so that either may go first. */
class move_windows::core final : public std::enable_shared_from_this<move_windows::core> {
 public:
  core(std::shared_ptr<uvm_driver> driver,
       std::unique_ptr<move_queue> queue,
       std::shared_ptr<line_account> account,
       window_settings settings,
       std::shared_ptr<clock> time)
    : driver_{std::move(driver)},
      queue_{std::move(queue)},
      account_{std::move(account)},
      settings_{settings},
      clock_{std::move(time)}
  {
  }

  void start();
  void stop() noexcept;
  [[nodiscard]] window_totals totals() const noexcept;
  [[nodiscard]] std::string refused() const { return refused_ ? reason_ : std::string{}; }
  [[nodiscard]] bool forked() const noexcept { return !process_.here(); }
  /** @brief Lets it live for good, with its thread: for a child of a fork. */
  void abandon() noexcept { itself_ = shared_from_this(); }

 private:
  /** @brief What one direction moves, and how much of that nobody asked for. */
  class one_way {
   public:
    /** @brief Takes the readings of now. @return whether more moved than was asked for meanwhile */
    bool look(std::uint64_t moved, std::uint64_t asked) noexcept
    {
      bool const unasked = moved - moved_ > asked - asked_;
      moved_             = moved;
      asked_             = asked;
      return unasked;
    }
    /** @brief A window saw so many bytes that somebody asked for. */
    void saw_asked(std::uint64_t bytes) noexcept { seen_asked_ += bytes; }
    /**
     * @brief How much moved unasked since the last estimate.
     * @param seen so many bytes of it were seen; others may ask, too, whom the driver does not know
     */
    [[nodiscard]] std::uint64_t estimate(std::uint64_t seen) noexcept
    {
      auto const by_us  = asked_ - asked_before_;
      auto const rest   = moved_ - moved_before_ - std::min(moved_ - moved_before_, by_us);
      auto const others = seen_asked_ - std::min(seen_asked_, by_us);
      auto const told   = seen + others == 0 ? rest : scaled(rest, seen, seen + others);
      moved_before_     = moved_;
      asked_before_     = asked_;
      seen_asked_       = 0;
      return std::max(seen, told);
    }
    /** @brief Begins again. */
    void skip() noexcept
    {
      moved_before_ = moved_;
      asked_before_ = asked_;
      seen_asked_   = 0;
    }

   private:
    std::uint64_t moved_{0};
    std::uint64_t asked_{0};
    std::uint64_t moved_before_{0};
    std::uint64_t asked_before_{0};
    std::uint64_t seen_asked_{0};
  };

  void loop(std::atomic<bool> const& cancelled) noexcept;
  void window(std::atomic<bool> const& cancelled) noexcept;
  [[nodiscard]] bool open();
  void close() noexcept;
  void enter() noexcept;
  [[nodiscard]] bool look() noexcept;

  std::shared_ptr<core> itself_;  // only once abandoned
  std::shared_ptr<uvm_driver> driver_;
  std::unique_ptr<move_queue> queue_;
  std::shared_ptr<line_account> account_;
  window_settings const settings_;
  std::shared_ptr<clock> const clock_;
  process_mark const process_;

  own_thread thread_;
  struct run {
    std::atomic<bool> cancelled{false};
    std::atomic<bool> ended{false};
  };
  std::shared_ptr<run> run_;  // from a start to a stop

  std::atomic<std::uint64_t> windows_{0};
  std::atomic<std::uint64_t> open_ns_{0};
  std::atomic<std::uint64_t> earlier_ns_{0};  // of runs that have ended
  std::atomic<std::uint64_t> began_ns_{0};
  std::atomic<bool> running_{false};
  std::atomic<std::uint64_t> faulted_bytes_{0};
  std::atomic<std::uint64_t> seen_bytes_{0};
  std::atomic<std::uint64_t> lost_moves_{0};
  std::string reason_;  // written before `refused_` is, and once
  std::atomic<bool> refused_{false};

  // The thread's own:
  std::uint64_t not_before_ns_{0};  // the next window
  one_way coming_;
  one_way leaving_;
  std::vector<seen_move> moves_;
};

void move_windows::core::start()
{
  bool const left_alone = run_ != nullptr && !run_->ended;  // its thread, which may come back
  if (thread_.joinable() || left_alone || refused_) { return; }
  auto mine = std::make_shared<run>();
  began_ns_ = clock_->now_ns();
  static_cast<void>(look());
  coming_.skip();
  leaving_.skip();
  thread_  = own_thread{"rmm_uvm windows", [self = shared_from_this(), mine] {
                         self->loop(mine->cancelled);
                         mine->ended = true;
                       }};
  run_     = std::move(mine);
  running_ = true;
}

void move_windows::core::stop() noexcept
{
  if (!thread_.joinable()) { return; }
  run_->cancelled = true;
  clock_->wake();
  auto const end = std::chrono::steady_clock::now() + settings_.patience;
  while (!run_->ended && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  // A thread that does not come back from its device keeps this object, and harms nobody.
  if (run_->ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  earlier_ns_ += clock_->now_ns() - began_ns_;
  running_ = false;
}

window_totals move_windows::core::totals() const noexcept
{
  auto const run_ns = earlier_ns_ + (running_ ? clock_->now_ns() - began_ns_ : 0);
  return {windows_, open_ns_, run_ns, faulted_bytes_, seen_bytes_, lost_moves_};
}

// The thread is in nobody's way while it sleeps. Else it may have locks of the account or of a
// simulated device, so that a fork waits for it, as for a call into a pool.

void move_windows::core::loop(std::atomic<bool> const& cancelled) noexcept
{
  while (!refused_ && clock_->sleep_until(clock_->now_ns() + settings_.look_ns, cancelled)) {
    if (look() && clock_->now_ns() >= not_before_ns_) { window(cancelled); }
  }
  static_cast<void>(look());
  faulted_bytes_ += coming_.estimate(0);  // that no window saw
}

/** @brief Reads the counters. @return whether something moves by itself */
bool move_windows::core::look() noexcept
{
  fork_call const call;
  auto const moved  = driver_->counters().read();
  auto const asked  = driver_->commands();
  bool const comes  = coming_.look(moved.host_to_device_bytes, asked.prefetched_to_device_bytes);
  bool const leaves = leaving_.look(moved.device_to_host_bytes, asked.prefetched_to_host_bytes);
  return comes || leaves;
}

void move_windows::core::window(std::atomic<bool> const& cancelled) noexcept
try {
  auto const begin_ns = clock_->now_ns();
  if (!open()) { return; }
  static_cast<void>(clock_->sleep_until(begin_ns + settings_.length_ns, cancelled));
  close();
  auto const took_ns = clock_->now_ns() - begin_ns;
  not_before_ns_ =
    begin_ns + static_cast<std::uint64_t>(static_cast<double>(took_ns) / settings_.most_fraction);
  open_ns_ += took_ns;
  ++windows_;
  static_cast<void>(look());
  enter();
} catch (std::bad_alloc const&) {
  return;  // it was not opened
}

bool move_windows::core::open()
{
  fork_call const call;
  auto opened = queue_->begin();
  if (opened.available) { return true; }
  reason_  = std::move(opened.reason);
  refused_ = true;
  return false;
}

void move_windows::core::close() noexcept
try {
  fork_call const call;
  moves_.clear();
  lost_moves_ += queue_->end(moves_);
} catch (std::bad_alloc const&) {
  moves_.clear();  // nobody looked through it
}

/** @brief What was seen stands for all that moved since the last window that saw something. */
void move_windows::core::enter() noexcept
{
  fork_call const call;
  for (bool const to_device : {true, false}) {
    auto& way          = to_device ? coming_ : leaving_;
    std::uint64_t seen = 0;
    for (auto const& move : moves_) {
      if (move.to_device != to_device) { continue; }
      if (was_asked_for(move)) {
        way.saw_asked(move.bytes);
      } else {
        seen += move.bytes;
      }
    }
    if (seen == 0) { continue; }
    auto const all            = way.estimate(seen);
    std::uint64_t seen_so_far = 0;
    std::uint64_t told        = 0;
    for (auto const& move : moves_) {
      if (move.to_device != to_device || was_asked_for(move)) { continue; }
      seen_so_far += move.bytes;
      auto const until = scaled(all, seen_so_far, seen);
      account_->estimated(move.within, until - std::exchange(told, until), traffic_of(move));
    }
    if (to_device) {
      faulted_bytes_ += all;
      seen_bytes_ += seen;
    }
  }
}

move_windows::move_windows(std::shared_ptr<uvm_driver> driver,
                           std::unique_ptr<move_queue> queue,
                           std::shared_ptr<line_account> account,
                           window_settings settings,
                           std::shared_ptr<clock> time)
{
  if (!time) { time = std::make_shared<steady_clock>(); }
  core_ = std::make_shared<core>(
    std::move(driver), std::move(queue), std::move(account), settings, std::move(time));
}

move_windows::~move_windows()
{
  if (core_->forked()) {
    core_->abandon();  // its thread does not exist here, and cannot be joined
    return;
  }
  core_->stop();
}

void move_windows::start()
{
  if (!core_->forked()) { core_->start(); }
}

void move_windows::stop() noexcept
{
  if (!core_->forked()) { core_->stop(); }
}

window_totals move_windows::totals() const noexcept { return core_->totals(); }

std::string move_windows::refused() const { return core_->refused(); }

}  // namespace rmm_uvm::monitor
