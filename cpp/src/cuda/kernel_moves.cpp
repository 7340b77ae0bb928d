// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include "tools_answers.hpp"

#include <rmm_uvm/cuda/kernel_moves.hpp>

#include <cstddef>
#include <cstring>
#include <utility>

namespace rmm_uvm::cuda {
namespace {

using uvm_tools::migration_entry;

constexpr std::uint32_t queue_mask       = move_queue::most_moves - 1;
constexpr std::size_t queue_bytes        = move_queue::most_moves * sizeof(migration_entry);
constexpr std::uint64_t migrations       = std::uint64_t{1} << uvm_tools::migration_event;
constexpr int most_self_tests            = 5;  // others may use the block's memory meanwhile
constexpr int good_self_tests            = 2;  // an entry of another size would not be the second
constexpr char const* refused_queue      = "the UVM kernel driver refused a queue of events";
constexpr char const* refused_migrations = "the UVM kernel driver refused to tell migrations";

/** @brief Whether an entry can be true: a move is within a block, of whole pages. */
[[nodiscard]] bool sound(migration_entry const& entry) noexcept
{
  return entry.type == uvm_tools::migration_event && entry.bytes > 0 &&
         entry.bytes % page_bytes == 0 && entry.address % page_bytes == 0 &&
         entry.address % va_block_bytes + entry.bytes <= va_block_bytes;
}

[[nodiscard]] migration_cause cause_of(migration_entry const& entry) noexcept
{
  return entry.cause < migration_cause_count ? static_cast<migration_cause>(entry.cause)
                                             : migration_cause::unknown;
}

}  // namespace

kernel_moves::kernel_moves(std::shared_ptr<system_calls> system,
                           int uvm_descriptor,
                           counter_page control,
                           counter_page entries,
                           descriptor tools) noexcept
  : system_{std::move(system)},
    uvm_descriptor_{uvm_descriptor},
    owner_{system_->process_id()},
    control_{std::move(control)},
    entries_{std::move(entries)},
    tools_{std::move(tools)}
{
}

opened_move_queue kernel_moves::open(uvm_driver& driver,
                                     std::shared_ptr<system_calls> const& system)
{
  std::vector<system_calls::open_file> files;
  if (auto const error = system->list_files(system->process_id(), files); error < 0) {
    return {nullptr,
            availability::no(std::string{"the descriptors of this process cannot be listed: "} +
                             std::strerror(-error))};
  }
  auto refused = availability::no("this process has no /dev/nvidia-uvm descriptor");
  // There may be two descriptors; only one belongs to the address space, and the self-test tells.
  for (auto const& file : files) {
    if (file.target != uvm_tools::device_path) { continue; }
    auto found = open_on(driver, system, file.number);
    if (found.queue) { return found; }
    refused = std::move(found.opened);
  }
  return {nullptr, std::move(refused)};
}

opened_move_queue kernel_moves::open_on(uvm_driver& driver,
                                        std::shared_ptr<system_calls> const& system,
                                        int uvm_descriptor)
{
  descriptor tools{system, system->open(uvm_tools::tools_path)};
  if (!tools.valid()) { return {nullptr, why_tools_do_not_open(-tools.get())}; }
  counter_page control{system};
  counter_page entries{system, queue_bytes};
  if (!control.valid() || !entries.valid()) {
    return {nullptr, availability::no("no memory for a queue of events that a fork leaves alone")};
  }
  uvm_tools::init_tracker_parameters init;
  init.queue_buffer      = entries.address();
  init.queue_buffer_size = most_moves;
  init.control_buffer    = control.address();
  init.all_processors    = 1;
  init.uvm_descriptor    = static_cast<std::uint32_t>(uvm_descriptor);
  auto const error       = system->ioctl(tools.get(), uvm_tools::init_tracker, &init);
  auto opened            = answered(error, init.status, refused_queue);
  if (!opened.available) { return {nullptr, std::move(opened)}; }
  std::unique_ptr<kernel_moves> made{new kernel_moves{
    system, uvm_descriptor, std::move(control), std::move(entries), std::move(tools)}};
  if (auto failure = made->self_test(driver)) {
    return {nullptr, availability::no(std::move(*failure))};
  }
  return {std::move(made), availability::yes()};
}

/** @brief Moves one block to the device: exactly its pages have to be seen, all going there. */
std::optional<std::string> kernel_moves::self_test(uvm_driver& driver)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  auto const device = location::device(driver.info().device_id);
  std::memset(reinterpret_cast<void*>(address), 1, va_block_bytes);  // pages now live on the host
  std::string unknown;
  std::optional<std::string> failure;
  int good = 0;
  for (int round = 0; round < most_self_tests && good < good_self_tests; ++round) {
    failure           = "the self-test could not move managed memory";
    auto const opened = begin();
    if (!opened.available) {
      failure = opened.reason;
      break;
    }
    bool moved = driver.prefetch(block, device, nullptr).ok() && driver.synchronize(nullptr).ok();
    close_window();
    std::vector<migration_entry> entries;
    bool const senseless   = take(entries) > 0;
    std::size_t seen_bytes = 0;
    device_                = 0;
    bool same_device       = true;
    for (auto const& entry : entries) {
      if (!block.covers({entry.address, entry.bytes}) || entry.source != uvm_tools::cpu ||
          cause_of(entry) != migration_cause::user) {
        continue;
      }
      same_device = same_device && (seen_bytes == 0 || entry.destination == device_);
      device_     = entry.destination;
      seen_bytes += entry.bytes;
    }
    moved = driver.prefetch(block, location::host(), nullptr).ok() &&
            driver.synchronize(nullptr).ok() && moved;
    if (!moved) { break; }
    if (seen_bytes == va_block_bytes && !senseless && same_device && device_ != uvm_tools::cpu) {
      ++good;
      continue;
    }
    unknown = "the self-test moved " + std::to_string(va_block_bytes) + " bytes and saw " +
              std::to_string(seen_bytes) + " of them move: unknown layout of the UVM kernel driver";
    if (senseless) { break; }
  }
  static_cast<void>(driver.free_managed(address));
  if (good == good_self_tests) { return std::nullopt; }
  return unknown.empty() ? failure : std::move(unknown);
}

availability kernel_moves::begin()
{
  if (in_child()) {
    return availability::no("the queue belongs to the process that this one was forked from");
  }
  // What came after the last window was closed is nobody's.
  give_back(__atomic_load_n(&control()->put_behind, __ATOMIC_ACQUIRE) & queue_mask);
  dropped_ = __atomic_load_n(&control()->dropped[uvm_tools::migration_event], __ATOMIC_RELAXED);
  uvm_tools::count_parameters enable{migrations};
  auto const error = system_->ioctl(tools_.get(), uvm_tools::enable_events, &enable);
  return answered(error, enable.status, refused_migrations);
}

std::uint64_t kernel_moves::end(std::vector<seen_move>& moves)
{
  if (in_child()) { return 0; }
  close_window();
  std::vector<migration_entry> entries;
  auto const lost = take(entries);
  moves.reserve(moves.size() + entries.size());
  for (auto const& entry : entries) {
    bool const to_device = entry.source == uvm_tools::cpu && entry.destination == device_;
    bool const to_host   = entry.source == device_ && entry.destination == uvm_tools::cpu;
    if (!to_device && !to_host) { continue; }  // another GPU's
    moves.push_back({{entry.address, entry.bytes}, entry.bytes, to_device, cause_of(entry)});
  }
  return lost;
}

void kernel_moves::close_window() noexcept
{
  // Those that are done and not entered yet; without it they are missing, which is no error.
  uvm_tools::flush_parameters flush;
  static_cast<void>(system_->ioctl(uvm_descriptor_, uvm_tools::flush_events, &flush));
  uvm_tools::count_parameters disable{migrations};
  static_cast<void>(system_->ioctl(tools_.get(), uvm_tools::disable_events, &disable));
}

/** @brief Takes all entries. @return how many were dropped for want of room, or make no sense */
std::uint64_t kernel_moves::take(std::vector<migration_entry>& taken)
{
  auto const end  = __atomic_load_n(&control()->put_behind, __ATOMIC_ACQUIRE) & queue_mask;
  auto const next = __atomic_load_n(&control()->get_behind, __ATOMIC_RELAXED) & queue_mask;
  auto const now =
    __atomic_load_n(&control()->dropped[uvm_tools::migration_event], __ATOMIC_RELAXED);
  auto lost = now - std::exchange(dropped_, now);
  taken.reserve((end - next) & queue_mask);
  auto const* const entries = static_cast<migration_entry const*>(entries_.data());
  for (auto at = next; at != end; at = (at + 1) & queue_mask) {
    auto const entry = entries[at];
    if (sound(entry)) {
      taken.push_back(entry);
    } else {
      ++lost;
    }
  }
  give_back(end);
  return lost;
}

void kernel_moves::give_back(std::uint32_t next) noexcept
{
  __atomic_store_n(&control()->get_ahead, next, __ATOMIC_RELAXED);
  __atomic_store_n(&control()->get_behind, next, __ATOMIC_RELEASE);
}

}  // namespace rmm_uvm::cuda
