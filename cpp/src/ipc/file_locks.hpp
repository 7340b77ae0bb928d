// SPDX-FileCopyrightText: 2026 The rmm-uvm authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstddef>

namespace rmm_uvm::ipc {

/** @brief One command on the lock of one byte of a file. @return 0 or -errno */
[[nodiscard]] inline int lock_byte(int descriptor, int what, short kind, off_t byte) noexcept
{
  struct flock lock{};
  lock.l_type   = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start  = byte;
  lock.l_len    = 1;
  while (::fcntl(descriptor, what, &lock) != 0) {
    if (errno == EINTR) { continue; }
    return errno == EACCES ? -EAGAIN : -errno;  // POSIX allows both for "somebody has it"
  }
  return 0;
}

/** @brief Whether another owner has locked a byte. @return 1, 0 or -errno */
[[nodiscard]] inline int held_elsewhere(int descriptor, off_t byte) noexcept
{
  struct flock lock{};
  lock.l_type   = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start  = byte;
  lock.l_len    = 1;
  if (::fcntl(descriptor, F_OFD_GETLK, &lock) != 0) { return -errno; }
  return lock.l_type == F_UNLCK ? 0 : 1;
}

}  // namespace rmm_uvm::ipc
