// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmm_uvm/ipc/lease_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace rmm_uvm::tests {

/** @brief A lease file that any number may open, each as an owner of its own. */
class shared_leases {
 public:
  explicit shared_leases(std::size_t slots)
    : slots_{slots}, descriptor_{::memfd_create("leases", MFD_CLOEXEC)}
  {
    static_cast<void>(
      ::ftruncate(descriptor_, static_cast<off_t>(ipc::lease_file::bytes_for(slots))));
  }
  ~shared_leases() { ::close(descriptor_); }
  shared_leases(shared_leases const&)            = delete;
  shared_leases& operator=(shared_leases const&) = delete;
  shared_leases(shared_leases&&)                 = delete;
  shared_leases& operator=(shared_leases&&)      = delete;

  /** @brief A new opening of the file; not a copy of the descriptor, which would share its locks.
   */
  [[nodiscard]] int descriptor() const
  {
    return ::open(("/proc/self/fd/" + std::to_string(descriptor_)).c_str(), O_RDWR | O_CLOEXEC);
  }
  [[nodiscard]] std::unique_ptr<ipc::lease_file> open() const
  {
    return ipc::lease_file::open(descriptor(), slots_).file;
  }
  /** @brief One that is the exporter. */
  [[nodiscard]] std::unique_ptr<ipc::lease_file> exporter() const
  {
    auto made = open();
    return made->try_be_exporter() == 0 ? std::move(made) : nullptr;
  }

 private:
  std::size_t slots_;
  int descriptor_;
};

}  // namespace rmm_uvm::tests
