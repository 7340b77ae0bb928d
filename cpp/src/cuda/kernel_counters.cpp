// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/kernel_counters.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rmm_uvm::cuda {
namespace {

// uvm_ioctl.h, 580.142: UVM_TOOLS_INIT_EVENT_TRACKER and UVM_TOOLS_ENABLE_COUNTERS.
constexpr unsigned long init_event_tracker = 56;
constexpr unsigned long enable_counters    = 60;

struct init_event_tracker_parameters {
  std::uint64_t queue_buffer;
  std::uint64_t queue_buffer_size;
  std::uint64_t control_buffer;  // page-aligned page that the totals are written to
  std::array<std::uint8_t, 16> processor;
  std::uint32_t all_processors;
  std::uint32_t uvm_descriptor;
  std::uint32_t status;
};

struct enable_counters_parameters {
  std::uint64_t flags;  // one bit a counter
  std::uint32_t status;
};

// uvm_types.h: order of the totals in the page, and of the flags.
constexpr std::size_t bytes_host_to_device = 0;
constexpr std::size_t bytes_device_to_host = 1;
constexpr std::uint64_t byte_counters      = 0x3;

/** @brief A file descriptor, closed when it goes. */
class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_{fd} {}
  ~descriptor()
  {
    if (fd_ >= 0) { ::close(fd_); }
  }
  descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  descriptor& operator=(descriptor&&)      = delete;
  descriptor(descriptor const&)            = delete;
  descriptor& operator=(descriptor const&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/** @brief One page of this process that the kernel writes totals to. */
class counter_page {
 public:
  counter_page() noexcept
    : page_{::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)}
  {
  }
  ~counter_page()
  {
    if (valid()) { ::munmap(page_, page_bytes); }
  }
  counter_page(counter_page&& other) noexcept : page_{std::exchange(other.page_, MAP_FAILED)} {}
  counter_page& operator=(counter_page&&)      = delete;
  counter_page(counter_page const&)            = delete;
  counter_page& operator=(counter_page const&) = delete;
  [[nodiscard]] bool valid() const noexcept { return page_ != MAP_FAILED; }  // NOLINT
  [[nodiscard]] std::uint64_t address() const noexcept
  {
    return reinterpret_cast<std::uint64_t>(page_);
  }
  [[nodiscard]] std::uint64_t total(std::size_t index) const noexcept
  {
    return __atomic_load_n(static_cast<std::uint64_t const*>(page_) + index, __ATOMIC_RELAXED);
  }

 private:
  void* page_;
};

class kernel_counters final : public migration_counters {
 public:
  kernel_counters(descriptor tools, counter_page page) noexcept
    : page_{std::move(page)}, tools_{std::move(tools)}
  {
  }
  [[nodiscard]] availability available() const override { return availability::yes(); }
  [[nodiscard]] migration_totals read() const noexcept override
  {
    return {page_.total(bytes_host_to_device), page_.total(bytes_device_to_host)};
  }

 private:
  counter_page page_;
  descriptor tools_;  // after the page: closing it stops the counting, and must come first
};

/** @brief Descriptors of this process that are /dev/nvidia-uvm itself. */
[[nodiscard]] std::vector<int> uvm_descriptors()
{
  std::vector<int> found;
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator{"/proc/self/fd", error}) {
    auto const target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && target == "/dev/nvidia-uvm") {
      found.push_back(std::stoi(entry.path().filename().string()));
    }
  }
  return found;
}

[[nodiscard]] std::unique_ptr<kernel_counters> attach(int uvm_descriptor,
                                                      device_info const& device,
                                                      std::string& reason)
{
  descriptor tools{::open("/dev/nvidia-uvm-tools", O_RDWR | O_CLOEXEC)};
  if (tools.get() < 0) {
    reason = std::string{"/dev/nvidia-uvm-tools cannot be opened: "} + std::strerror(errno);
    return nullptr;
  }
  counter_page page;
  if (!page.valid()) {
    reason = "no memory for the counter page";
    return nullptr;
  }
  init_event_tracker_parameters init{};
  init.control_buffer = page.address();
  init.processor      = device.uuid;
  init.uvm_descriptor = static_cast<std::uint32_t>(uvm_descriptor);
  if (::ioctl(tools.get(), init_event_tracker, &init) != 0 || init.status != 0) {
    reason = "the UVM kernel driver refused a counter tracker (status " +
             std::to_string(init.status) + ")";
    return nullptr;
  }
  enable_counters_parameters enable{byte_counters, 0};
  if (::ioctl(tools.get(), enable_counters, &enable) != 0 || enable.status != 0) {
    reason =
      "the UVM kernel driver refused to count bytes (status " + std::to_string(enable.status) + ")";
    return nullptr;
  }
  return std::make_unique<kernel_counters>(std::move(tools), std::move(page));
}

/** @brief How often the self-test may move its block before it gives up; see there. */
constexpr int self_test_rounds = 3;

/**
 * @brief Moves one block to the device and back; both totals must rise by exactly its size.
 *
 * On a full device the first round evicts another block, whose bytes count too; the block then
 * keeps its device memory, and the second round is clean. A round may also meet traffic of others.
 */
[[nodiscard]] std::optional<std::string> self_test(uvm_driver& driver,
                                                   kernel_counters const& counters)
{
  std::uintptr_t address = 0;
  if (!driver.allocate_managed(va_block_bytes, address).ok()) {
    return "the self-test found no managed memory";
  }
  memory_range const block{address, va_block_bytes};
  auto const device = location::device(driver.info().device_id);
  std::memset(reinterpret_cast<void*>(address), 1, va_block_bytes);  // pages now live on the host
  std::optional<std::string> failure;
  for (int round = 0; round < self_test_rounds; ++round) {
    auto const before = counters.read();
    bool const moved =
      driver.prefetch(block, device, nullptr).ok() && driver.synchronize(nullptr).ok() &&
      driver.prefetch(block, location::host(), nullptr).ok() && driver.synchronize(nullptr).ok();
    auto const after = counters.read();
    if (!moved) {
      failure = "the self-test could not move managed memory";
      break;
    }
    auto const to_device = after.host_to_device_bytes - before.host_to_device_bytes;
    auto const to_host   = after.device_to_host_bytes - before.device_to_host_bytes;
    if (to_device == va_block_bytes && to_host == va_block_bytes) {
      failure.reset();
      break;
    }
    failure = "the self-test moved " + std::to_string(va_block_bytes) +
              " bytes each way and read " + std::to_string(to_device) + " and " +
              std::to_string(to_host) +
              ": unknown layout of the UVM kernel driver, or traffic of others";
  }
  static_cast<void>(driver.free_managed(address));
  return failure;
}

}  // namespace

std::unique_ptr<migration_counters> open_kernel_counters(uvm_driver& driver)
{
  if (!driver.info().concurrent_managed_access.available) {
    return std::make_unique<no_counters>("without concurrent managed access nothing migrates");
  }
  std::string reason = "this process has no /dev/nvidia-uvm descriptor";
  // There may be two descriptors; only one belongs to the address space, and the self-test tells.
  for (auto const uvm_descriptor : uvm_descriptors()) {
    auto counters = attach(uvm_descriptor, driver.info(), reason);
    if (!counters) { continue; }
    auto const failure = self_test(driver, *counters);
    if (!failure) { return counters; }
    reason = *failure;
  }
  return std::make_unique<no_counters>(reason);
}

}  // namespace rmm_uvm::cuda
