// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#include <rmm_uvm/cuda/system_calls.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace rmm_uvm::cuda {
namespace {

// By number, since older C libraries name neither; the same on x86-64 and aarch64.
constexpr long pidfd_open_number  = 434;  // Linux 5.3
constexpr long pidfd_getfd_number = 438;  // Linux 5.6

/** @brief `MADV_WIPEONFORK`, Linux 4.14. */
constexpr int wipe_on_fork_advice = 18;

/** @brief `KCMP_FILE` of linux/kcmp.h. */
constexpr int compare_files = 0;

[[nodiscard]] int answer(long result) noexcept
{
  return result < 0 ? -errno : static_cast<int>(result);
}

class linux_calls final : public system_calls {
 public:
  [[nodiscard]] int open(char const* path) noexcept override
  {
    return answer(::open(path, O_RDWR | O_CLOEXEC));
  }
  [[nodiscard]] int open_to_read(char const* path) noexcept override
  {
    return answer(::open(path, O_RDONLY | O_CLOEXEC));
  }
  [[nodiscard]] long read_at(int descriptor,
                             void* buffer,
                             std::size_t bytes,
                             std::uint64_t offset) noexcept override
  {
    auto const read = ::pread(descriptor, buffer, bytes, static_cast<off_t>(offset));
    return read < 0 ? -errno : static_cast<long>(read);
  }
  void close(int descriptor) noexcept override { ::close(descriptor); }
  [[nodiscard]] int ioctl(int descriptor, unsigned long request, void* argument) noexcept override
  {
    return answer(::ioctl(descriptor, request, argument));
  }
  [[nodiscard]] void* map(std::size_t bytes) noexcept override
  {
    void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? nullptr : address;  // NOLINT
  }
  [[nodiscard]] int wipe_on_fork(void* address, std::size_t bytes) noexcept override
  {
    return answer(::madvise(address, bytes, wipe_on_fork_advice));
  }
  void unmap(void* address, std::size_t bytes) noexcept override { ::munmap(address, bytes); }
  [[nodiscard]] int keep_apart(std::uintptr_t address, std::size_t bytes) noexcept override
  {
    // Advice by which a mapping can differ from the next, and that changes nothing about its use.
    return answer(::madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTDUMP));  // NOLINT
  }
  [[nodiscard]] int process_id() noexcept override { return ::getpid(); }
  [[nodiscard]] int open_process(int pid) noexcept override
  {
    return answer(::syscall(pidfd_open_number, pid, 0U));
  }
  [[nodiscard]] int copy_descriptor(int process, int descriptor) noexcept override
  {
    return answer(::syscall(pidfd_getfd_number, process, descriptor, 0U));
  }
  [[nodiscard]] bool same_file(int first, int second) noexcept override
  {
    auto const self = ::getpid();
    return ::syscall(SYS_kcmp, self, self, compare_files, first, second) == 0;
  }
  [[nodiscard]] int wait_exit(int process, int timeout_ms) noexcept override
  {
    pollfd waited{process, POLLIN, 0};
    return answer(::poll(&waited, 1, timeout_ms));
  }
  [[nodiscard]] int list_files(int pid, std::vector<open_file>& files) override
  {
    // Of itself a process can be sure even where /proc counts processes as another namespace does.
    auto const path = "/proc/" + (pid == ::getpid() ? "self" : std::to_string(pid)) + "/fd";
    std::unique_ptr<DIR, int (*)(DIR*)> const folder{::opendir(path.c_str()), ::closedir};
    int const descriptor = folder ? ::dirfd(folder.get()) : -1;
    if (descriptor < 0) { return -errno; }
    while (auto const* const entry = ::readdir(folder.get())) {
      auto const* const end = entry->d_name + std::strlen(entry->d_name);
      open_file file;
      if (std::from_chars(entry->d_name, end, file.number).ec != std::errc{}) { continue; }
      std::array<char, 256> target{};
      auto const length = ::readlinkat(descriptor, entry->d_name, target.data(), target.size());
      if (length < 0) { continue; }  // closed meanwhile
      file.target.assign(target.data(), static_cast<std::size_t>(length));
      files.push_back(std::move(file));
    }
    return 0;
  }
  [[nodiscard]] std::string read_line(char const* path) override
  {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
  }
};

}  // namespace

std::shared_ptr<system_calls> linux_system_calls() { return std::make_shared<linux_calls>(); }

}  // namespace rmm_uvm::cuda
