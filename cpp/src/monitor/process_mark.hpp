// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace rmm_uvm::monitor {

/**
 * @brief Tells, at the cost of a load, whether this is the process that made the object.
 *
 * A page that the kernel hands to a forked child as zeros (MADV_WIPEONFORK, Linux 4.14), which
 * needs neither a system call at every event nor a handler that outlives the object.
 */
class process_mark {
 public:
  /** @throws std::bad_alloc if there is no page */
  process_mark() : bytes_{static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))}
  {
    page_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ == MAP_FAILED) { throw std::bad_alloc{}; }
    ::madvise(page_, bytes_, MADV_WIPEONFORK);
    *static_cast<volatile unsigned char*>(page_) = 1;
  }
  process_mark(process_mark const&)            = delete;
  process_mark& operator=(process_mark const&) = delete;
  process_mark(process_mark&&)                 = delete;
  process_mark& operator=(process_mark&&)      = delete;
  ~process_mark() { ::munmap(page_, bytes_); }

  /** @brief False in a child of the process that made it. */
  [[nodiscard]] bool here() const noexcept
  {
    return *static_cast<volatile unsigned char const*>(page_) != 0;
  }

 private:
  std::size_t bytes_;
  void* page_;
};

}  // namespace rmm_uvm::monitor
