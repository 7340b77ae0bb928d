// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/sim/simulated_transfers.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

namespace rmm_uvm::sim {
namespace {

/** @brief What a handle of shared memory holds: where a process keeps it, and which it is. */
struct memory_handle {
  std::array<char, 8> magic{'r', 'm', 'm', 'u', 'v', 'm', 'S', 'M'};
  std::uint32_t process{0};
  std::int32_t descriptor{-1};
  std::uint64_t file_system{0};  // with `file` tells whether the descriptor is still the same
  std::uint64_t file{0};
  std::uint64_t bytes{0};
};

/** @brief What a handle of an event holds: enough to be told from another. */
struct event_handle {
  std::array<char, 8> magic{'r', 'm', 'm', 'u', 'v', 'm', 'S', 'E'};
  std::uint32_t process{0};
  std::uint32_t reserved{0};
  std::uint64_t number{0};
};

template <typename Content>
[[nodiscard]] ipc_handle packed(Content const& content) noexcept
{
  static_assert(sizeof(Content) <= ipc_handle_bytes && std::is_trivially_copyable_v<Content>);
  ipc_handle handle{};
  std::memcpy(handle.data(), &content, sizeof content);
  return handle;
}

/** @brief The content of a handle; none when it is a handle of something else. */
template <typename Content>
[[nodiscard]] std::optional<Content> unpacked(ipc_handle const& handle) noexcept
{
  Content content;
  auto const magic = content.magic;
  std::memcpy(&content, handle.data(), sizeof content);
  return content.magic == magic ? std::optional{content} : std::nullopt;
}

/** @brief A mark of work that was done before it was made. */
class simulated_mark final : public transfer_mark {
 public:
  explicit simulated_mark(std::shared_ptr<simulated_device> device) : device_{std::move(device)} {}

  status done(bool& reached) noexcept override
  {
    auto const result = answer("done");
    if (result.ok()) { reached = true; }
    return result;
  }
  status wait() noexcept override { return answer("wait"); }
  status make_wait(stream_handle /*stream*/) noexcept override { return answer("make_wait"); }

 private:
  [[nodiscard]] status answer(char const* call) noexcept
  {
    return device_->answers().met_by(call).value_or(status{});
  }

  std::shared_ptr<simulated_device> device_;
};

/** @brief An event; everything before it has been done already. */
class simulated_event final : public ipc_event {
 public:
  simulated_event(std::shared_ptr<simulated_device> device, ipc_handle const& handle)
    : device_{std::move(device)}, handle_{handle}
  {
  }

  [[nodiscard]] ipc_handle const& handle() const noexcept override { return handle_; }
  status record(stream_handle /*stream*/) noexcept override { return answer("record"); }
  status make_wait(stream_handle /*stream*/) noexcept override { return answer("make_wait"); }

 private:
  [[nodiscard]] status answer(char const* call) noexcept
  {
    return device_->answers().met_by(call).value_or(status{});
  }

  std::shared_ptr<simulated_device> device_;
  ipc_handle handle_;
};

/** @brief Opens the shared memory that a handle names. @return descriptor, or -1 */
[[nodiscard]] int open_shared(memory_handle const& content) noexcept
{
  std::array<char, 64> path{};
  static_cast<void>(
    std::snprintf(path.data(), path.size(), "/proc/%u/fd/%d", content.process, content.descriptor));
  int const opened = ::open(path.data(), O_RDWR | O_CLOEXEC);
  if (opened < 0) { return -1; }
  struct stat file{};
  // The process may have ended, and another one have its number; or the memory have been freed.
  if (::fstat(opened, &file) == 0 && file.st_dev == content.file_system &&
      file.st_ino == content.file && std::cmp_equal(file.st_size, content.bytes)) {
    return opened;
  }
  ::close(opened);
  return -1;
}

}  // namespace

simulated_transfers::~simulated_transfers()
{
  if (staging_.bytes != 0) { static_cast<void>(device_->program().free_device(staging_.address)); }
}

std::optional<memory_kind> simulated_transfers::find(std::uintptr_t address) const
{
  if (auto const own = device_->view().find_memory(address)) { return own; }
  std::lock_guard const lock{mutex_};
  auto it = opened_.upper_bound(address);
  if (it == opened_.begin()) { return std::nullopt; }
  it = std::prev(it);
  if (address - it->first >= it->second.bytes) { return std::nullopt; }
  return memory_kind{false, false, it->first, it->second.bytes, device_->info().device_id};
}

status simulated_transfers::find_memory(std::uintptr_t address,
                                        std::optional<memory_kind>& found) noexcept
try {
  if (auto const planned = device_->answers().met_by("find_memory")) { return *planned; }
  found = find(address);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "find_memory");
}

status simulated_transfers::wait_for(stream_handle stream) noexcept
try {
  if (auto const planned = device_->answers().met_by("wait_for")) { return *planned; }
  if (device_->capturing(stream) != capture_state::none) {
    return failed(status_code::not_supported, "wait_for");
  }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "wait_for");
}

status simulated_transfers::copy_one(transfer const& one) noexcept
{
  for (auto const& [address, write] : {std::pair{one.from, false}, std::pair{one.to, true}}) {
    auto const kind = find(address);
    if (!kind || one.bytes > kind->bytes - (address - kind->base)) {
      return failed(status_code::invalid_value, "copy");
    }
    if (!kind->managed) { continue; }
    if (auto const touched = device_->program().touch({address, one.bytes}, write); !touched.ok()) {
      return touched;
    }
  }
  std::memmove(reinterpret_cast<void*>(one.to), reinterpret_cast<void const*>(one.from), one.bytes);
  return {};
}

status simulated_transfers::copy(std::span<transfer const> copies) noexcept
try {
  if (auto const planned = device_->answers().met_by("copy")) { return *planned; }
  if (!device_->view().backing()) { return failed(status_code::not_supported, "copy"); }
  for (auto const& one : copies) {
    if (one.bytes == 0) { continue; }
    if (auto const copied = copy_one(one); !copied.ok()) { return copied; }
  }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "copy");
}

status simulated_transfers::take_staging(std::size_t bytes) noexcept
try {
  if (auto const planned = device_->answers().met_by("take_staging")) { return *planned; }
  if (!device_->view().backing()) { return failed(status_code::not_supported, "take_staging"); }
  constexpr std::size_t least_bytes = 512;  // as on a GPU: two halves of 256
  std::lock_guard const lock{mutex_};
  if (bytes < least_bytes || staging_.bytes != 0) {
    return failed(status_code::invalid_value, "take_staging");
  }
  auto const taken = device_->program().allocate_device(bytes, staging_.address);
  if (taken.ok()) { staging_.bytes = bytes; }
  return taken;
} catch (...) {
  return failed(status_code::out_of_memory, "take_staging");
}

status simulated_transfers::mark(std::shared_ptr<transfer_mark>& made) noexcept
try {
  if (auto const planned = device_->answers().met_by("mark")) { return *planned; }
  made = std::make_shared<simulated_mark>(device_);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "mark");
}

status simulated_transfers::ipc_memory_handle(std::uintptr_t base, ipc_handle& handle) noexcept
try {
  if (auto const planned = device_->answers().met_by("ipc_memory_handle")) { return *planned; }
  if (!device_->view().backing()) {
    return failed(status_code::not_supported, "ipc_memory_handle");
  }
  auto const descriptor = device_->view().shared_descriptor(base);
  struct stat file{};
  if (descriptor < 0 || ::fstat(descriptor, &file) != 0) {
    return failed(status_code::invalid_value, "ipc_memory_handle");
  }
  memory_handle content;
  content.process     = static_cast<std::uint32_t>(::getpid());
  content.descriptor  = descriptor;
  content.file_system = file.st_dev;
  content.file        = file.st_ino;
  content.bytes       = static_cast<std::uint64_t>(file.st_size);
  handle              = packed(content);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "ipc_memory_handle");
}

status simulated_transfers::open_ipc_memory(ipc_handle const& handle,
                                            std::uintptr_t& address) noexcept
try {
  if (auto const planned = device_->answers().met_by("open_ipc_memory")) { return *planned; }
  if (!device_->view().backing()) { return failed(status_code::not_supported, "open_ipc_memory"); }
  auto const content = unpacked<memory_handle>(handle);
  // As CUDA: a process does not open its own memory.
  if (!content || std::cmp_equal(content->process, ::getpid())) {
    return failed(status_code::invalid_value, "open_ipc_memory");
  }
  std::lock_guard const lock{mutex_};
  auto const known = std::find_if(
    opened_.begin(), opened_.end(), [&](auto const& one) { return one.second.handle == handle; });
  if (known != opened_.end()) {
    ++known->second.openings;
    address = known->first;
    return {};
  }
  auto const descriptor = open_shared(*content);
  if (descriptor < 0) { return failed(status_code::driver_error, "open_ipc_memory"); }
  opened_memory opened{handle, address_range::of(descriptor, content->bytes), content->bytes, 1};
  ::close(descriptor);
  if (opened.addresses.address() == 0) {
    return failed(status_code::out_of_memory, "open_ipc_memory");
  }
  auto const first = opened.addresses.address();
  opened_.emplace(first, std::move(opened));
  address = first;
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "open_ipc_memory");
}

status simulated_transfers::close_ipc_memory(std::uintptr_t address) noexcept
try {
  if (auto const planned = device_->answers().met_by("close_ipc_memory")) { return *planned; }
  std::lock_guard const lock{mutex_};
  auto const it = opened_.find(address);
  if (it == opened_.end()) { return failed(status_code::invalid_value, "close_ipc_memory"); }
  if (--it->second.openings == 0) { opened_.erase(it); }
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "close_ipc_memory");
}

status simulated_transfers::make_ipc_event(std::shared_ptr<ipc_event>& made) noexcept
try {
  if (auto const planned = device_->answers().met_by("make_ipc_event")) { return *planned; }
  static std::atomic<std::uint64_t> count{0};
  event_handle content;
  content.process = static_cast<std::uint32_t>(::getpid());
  content.number  = count.fetch_add(1, std::memory_order_relaxed) + 1;
  made            = std::make_shared<simulated_event>(device_, packed(content));
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "make_ipc_event");
}

status simulated_transfers::open_ipc_event(ipc_handle const& handle,
                                           std::shared_ptr<ipc_event>& opened) noexcept
try {
  if (auto const planned = device_->answers().met_by("open_ipc_event")) { return *planned; }
  auto const content = unpacked<event_handle>(handle);
  if (!content || std::cmp_equal(content->process, ::getpid())) {
    return failed(status_code::invalid_value, "open_ipc_event");
  }
  opened = std::make_shared<simulated_event>(device_, handle);
  return {};
} catch (...) {
  return failed(status_code::out_of_memory, "open_ipc_event");
}

}  // namespace rmm_uvm::sim
