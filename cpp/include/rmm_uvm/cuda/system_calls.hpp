// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rmm_uvm::cuda {

/**
 * @brief The operating system, as far as counters need it; tests put a fake in its place.
 *
 * What fails answers a negative errno, as the kernel itself does; nothing throws but `list_files`
 * and `read_line`, when memory runs out. Thread-safe.
 */
class system_calls {
 public:
  /** @brief One open descriptor of a process. */
  struct open_file {
    int number{-1};      ///< the descriptor, in that process
    std::string target;  ///< what it is open on, such as "/dev/nvidia-uvm"
  };

  system_calls()                               = default;
  system_calls(system_calls const&)            = delete;
  system_calls& operator=(system_calls const&) = delete;
  system_calls(system_calls&&)                 = delete;
  system_calls& operator=(system_calls&&)      = delete;
  virtual ~system_calls()                      = default;

  /** @brief Opens a file for reading and writing, closed on exec. @return descriptor or -errno */
  [[nodiscard]] virtual int open(char const* path) noexcept = 0;
  /** @brief The same for reading only. */
  [[nodiscard]] virtual int open_to_read(char const* path) noexcept = 0;
  /** @brief Reads from a place in a file. @return bytes read, or -errno */
  [[nodiscard]] virtual long read_at(int descriptor,
                                     void* buffer,
                                     std::size_t bytes,
                                     std::uint64_t offset) noexcept = 0;
  /** @brief Closes a descriptor. */
  virtual void close(int descriptor) noexcept = 0;
  /** @brief ioctl. @return what it answers, or -errno */
  [[nodiscard]] virtual int ioctl(int descriptor,
                                  unsigned long request,
                                  void* argument) noexcept = 0;
  /** @brief Private zeroed memory of this process, page-aligned. @return null when there is none */
  [[nodiscard]] virtual void* map(std::size_t bytes) noexcept = 0;
  /** @brief Lets a forked child find zeros in place of `map`ped memory. @return 0 or -errno */
  [[nodiscard]] virtual int wipe_on_fork(void* address, std::size_t bytes) noexcept = 0;
  /** @brief Gives `map`ped memory back. */
  virtual void unmap(void* address, std::size_t bytes) noexcept = 0;
  /** @brief Keeps a part of a mapping a mapping of its own. @return 0 or -errno */
  [[nodiscard]] virtual int keep_apart(std::uintptr_t address, std::size_t bytes) noexcept = 0;
  /** @brief This process. */
  [[nodiscard]] virtual int process_id() noexcept = 0;
  /** @brief A descriptor that stands for a process. @return it, closed on exec, or -errno */
  [[nodiscard]] virtual int open_process(int pid) noexcept = 0;
  /** @brief A copy of another process' descriptor. @return it, closed on exec, or -errno */
  [[nodiscard]] virtual int copy_descriptor(int process, int descriptor) noexcept = 0;
  /** @brief Whether two descriptors are one open file; false too when it cannot be told. */
  [[nodiscard]] virtual bool same_file(int first, int second) noexcept = 0;
  /**
   * @brief Waits until a process has ended.
   * @param timeout_ms 0 only looks
   * @return 1 when it has ended, 0 when not, or -errno (a signal: -EINTR)
   */
  [[nodiscard]] virtual int wait_exit(int process, int timeout_ms) noexcept = 0;
  /** @brief Lists a process' open descriptors. @return 0 or -errno */
  [[nodiscard]] virtual int list_files(int pid, std::vector<open_file>& files) = 0;
  /** @brief The first line of a small file; empty when it cannot be read. */
  [[nodiscard]] virtual std::string read_line(char const* path) = 0;
};

/** @brief Linux. */
[[nodiscard]] std::shared_ptr<system_calls> linux_system_calls();

/** @brief A descriptor, closed when it goes. */
class descriptor {
 public:
  descriptor() = default;
  /** @param number from `system`; negative is none */
  descriptor(std::shared_ptr<system_calls> system, int number) noexcept
    : system_{std::move(system)}, number_{number}
  {
  }
  ~descriptor() { reset(); }
  descriptor(descriptor&& other) noexcept
    : system_{std::move(other.system_)}, number_{std::exchange(other.number_, -1)}
  {
  }
  descriptor& operator=(descriptor&& other) noexcept
  {
    if (this != &other) {
      reset();
      system_ = std::move(other.system_);
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  descriptor(descriptor const&)            = delete;
  descriptor& operator=(descriptor const&) = delete;

  /** @brief The number, or what it was made with when that was negative. */
  [[nodiscard]] int get() const noexcept { return number_; }
  /** @brief Whether it is open. */
  [[nodiscard]] bool valid() const noexcept { return number_ >= 0; }
  /** @brief Closes it now. */
  void reset() noexcept
  {
    if (number_ >= 0) { system_->close(std::exchange(number_, -1)); }
  }

 private:
  std::shared_ptr<system_calls> system_;
  int number_{-1};
};

}  // namespace rmm_uvm::cuda
